"""The house rules that code can hold: import directions, public surface, documentation, light imports."""

import ast
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from soundness import theorems
from typer.main import get_command

import tacit
from tacit import cli

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tacit"

# Each room and the rooms it may import. Nothing may import a room that does not list it here.
MAY_IMPORT = {
    "errors": set(),
    "checked": {"errors"},
    "cards": set(),
    "guarantee": {"cards", "checked", "errors"},
    "files": {"errors"},
    "numerics": {"errors"},
    "entropy": {"errors", "checked"},
    "theory": {"errors", "checked", "numerics"},
    "reconstruction": {"cards", "checked", "errors", "guarantee", "numerics", "report", "theory"},
    "learning": {
        "cards",
        "checked",
        "engine",
        "entropy",
        "errors",
        "files",
        "guarantee",
        "kept",
        "ledger",
        "numerics",
        "report",
        "theory",
    },
    "audit": {"cards", "checked", "errors", "guarantee", "numerics", "report", "theory"},
    "report": {"errors", "checked", "guarantee", "__init__"},
    "ledger": {"checked", "errors", "files", "guarantee", "report"},
    "demo": {
        "audit",
        "checked",
        "errors",
        "guarantee",
        "learning",
        "readings",
        "reconstruction",
        "report",
        "theory",
    },
    "kept": {"errors", "files"},
    "readings": {"guarantee", "reconstruction"},
    "engine": {"errors"},
    "bound": {
        "__init__",
        "checked",
        "engine",
        "errors",
        "files",
        "guarantee",
        "kept",
        "readings",
        "reconstruction",
        "report",
    },
    "reproduction": {
        "audit",
        "checked",
        "errors",
        "files",
        "guarantee",
        "kept",
        "learning",
        "readings",
        "reconstruction",
        "report",
        "theory",
        "__init__",
    },
    "plan": {"errors", "guarantee", "learning", "report"},
    "tables": {"checked", "errors", "files"},
    "learn": {"checked", "errors", "files", "guarantee", "kept", "learning", "ledger", "report", "tables", "theory"},
    "audited": {"audit", "checked", "errors", "guarantee", "report", "tables"},
    "cli": {
        "__init__",
        "audited",
        "bound",
        "demo",
        "errors",
        "files",
        "learn",
        "ledger",
        "plan",
        "report",
        "reproduction",
    },
    "__init__": {"errors", "guarantee"},
    "__main__": {"cli"},
}
# Foreign packages that only some rooms may import at all, wherever in a file the import stands.
APPLIED = {f"tacit.reconstruction.{name}" for name in ("unbiased", "anyone", "twin_search", "bayes")}
"""Modules that apply the theorems of others to a model."""

ONLY_IN = {
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "sklearn": {"audit", "demo", "learning", "reconstruction", "reproduction"},
    "opendp": {"entropy"},
    "sqlalchemy": {"ledger"},
    "sqlite3": {"ledger"},
    "dask": {"engine"},
    "distributed": {"engine"},
    "joblib": {"learning"},
    "ray": {"learning"},
    "skops": {"learning"},
    "pyarrow": {"tables"},
    "typer": {"cli"},
    "rich": {"cli"},
    "torch": {"audit", "demo", "learning", "reconstruction", "bound", "kept", "reproduction"},
    "torchvision": {"reproduction"},
}


def room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(path):
    """(room of tacit or None, foreign package or None) for every import of a file, wherever it stands."""
    package = ["tacit", *path.relative_to(SOURCE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            # `from . import name` may name a room or a public name of the package itself.
            modules = [f"{module}.{alias.name}" if module == "tacit" else module for alias in node.names]
        else:
            continue
        for module in modules:
            head, _, rest = module.partition(".")
            if head != "tacit":
                yield None, head
            else:
                name = rest.partition(".")[0]
                exists = (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").exists()
                yield (name if name and exists else "__init__"), None


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_run_one_way(path):
    own = room(path)
    for other, foreign in imports(path):
        if other is not None and other != own:
            assert other in MAY_IMPORT[own], f"{own} imports {other}"
        if foreign in ONLY_IN:
            assert own in ONLY_IN[foreign], f"{own} imports {foreign}"


def test_the_rooms_form_no_circle():
    order, left = [], {name: set(rooms) for name, rooms in MAY_IMPORT.items()}
    left["report"].discard("__init__")  # for the version number, inside a function
    while left:
        free = [name for name, rooms in left.items() if rooms <= set(order)]
        assert free, f"a circle among {sorted(left)}"
        order += free
        left = {name: rooms for name, rooms in left.items() if name not in free}


def test_the_architecture_page_says_who_may_import_whom():
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, flags=re.MULTILINE))
    told = {
        name: set(re.findall(r"`(\w+)`", words)) | ({"__init__"} if "the version number" in words else set())
        for name, words in rows.items()
    }
    assert told == {name: rooms for name, rooms in MAY_IMPORT.items() if not name.startswith("__")}
    drawn = set(re.findall(r"^  (\w+)(?:\.py|/) ", page, flags=re.MULTILINE))
    assert drawn == set(MAY_IMPORT) - {"__main__"}


def test_no_room_is_allowed_what_it_does_not_need():
    used = {name: set() for name in MAY_IMPORT}
    for path in FILES:
        used[room(path)] |= {other for other, _ in imports(path) if other not in (None, room(path))}
    assert used == MAY_IMPORT


def test_the_core_needs_the_standard_library_alone():
    for name in ("errors", "checked", "cards", "guarantee"):
        foreign = {package for _, package in imports(SOURCE / f"{name}.py") if package}
        assert foreign - set(sys.stdlib_module_names) <= {"numpy"}  # of arrays at the door, imported where used
    script = "import sys, tacit; print('numpy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "False"


def test_importing_tacit_loads_nothing_heavy():
    script = "import sys, json, tacit; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    loaded = set(json.loads(subprocess.check_output([sys.executable, "-c", script], text=True)))
    heavy = {"torch", "sklearn", "matplotlib", "dp_accounting", "scipy", "opendp", "jinja2", "typer", "rich"}
    assert not loaded & heavy


def test_starting_the_command_line_loads_nothing_heavy():
    script = "import sys, json, tacit.cli; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    loaded = set(json.loads(subprocess.check_output([sys.executable, "-c", script], text=True)))
    assert not loaded & {"torch", "sklearn", "matplotlib", "dp_accounting", "scipy", "opendp", "numpy"}


def test_the_public_surface_is_all():
    public = {name for name, value in vars(tacit).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert public - {"version"} == set(tacit.__all__) - {"__version__"}
    assert sorted(tacit.__all__) == tacit.__all__


def test_every_theorem_states_what_it_claims():
    for module, functions in theorems().items():
        assert functions, f"{module} holds no theorem"
        for name in functions:
            function = getattr(import_module(module), name)
            assert function.side in ("at_least", "at_most")
            if module in APPLIED:
                continue
            for part in ("Statement.", "Assumptions.", "Direction.", "Reference."):
                assert part in inspect.getdoc(function), f"{module}.{name} lacks {part}"
            proofs = (ROOT / "docs" / "proofs" / f"{module.rpartition('.')[2]}.md").read_text()
            assert f"`{name}`" in proofs, f"docs/proofs does not prove {module}.{name}"


def test_no_module_hides_a_public_name():
    """One of the name of a function beside it would take its place in the reference."""
    for path in FILES:
        if path.name == "__init__.py":
            room = import_module(".".join(path.relative_to(SOURCE.parent).parts[:-1]))
            assert not {beside.stem for beside in path.parent.glob("*.py")} & set(getattr(room, "__all__", ())), room


def test_everything_public_has_a_docstring():
    paths = [path.relative_to(SOURCE.parent).with_suffix("") for path in FILES if path.name != "__main__.py"]
    modules = [import_module(".".join(part for part in path.parts if part != "__init__")) for path in paths]
    for module in modules:
        assert module.__doc__, module
        for name, value in inspect.getmembers(module, lambda x: inspect.isfunction(x) or inspect.isclass(x)):
            if value.__module__ == module.__name__ and not name.startswith("_"):
                assert value.__doc__, f"{module.__name__}.{name}"


def commands(group, before=""):
    """Every command by its full name, those of groups too."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


COMMANDS = dict(commands(get_command(cli.app)))


def test_every_command_is_documented():
    page = (ROOT / "docs" / "command-line.md").read_text()
    for name, command in COMMANDS.items():
        assert f"## `tacit {name}`" in page
        assert command.help
        for parameter in command.params:
            for option in parameter.opts:
                assert f"`{option}" in page, f"docs/command-line.md does not explain {name} {option}"


def test_every_command_has_the_common_options():
    for name, command in COMMANDS.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert {"--json", "--report", "--quiet"} <= options, name


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(path, *languages):
    return re.findall(rf"^```({'|'.join(languages)})\n(.*?)^```", path.read_text(), flags=re.DOTALL | re.MULTILINE)


def page_script(path):
    """The page's Python in order; in tutorials, whose readers type all of it, the commands between as well."""
    if path.parent.name != "tutorials":
        return [text for _, text in blocks_of(path, "python")]
    run = 'import subprocess\nsubprocess.run(r"""\n{}""", shell=True, check=True)\n'
    return [text if language == "python" else run.format(text) for language, text in blocks_of(path, "python", "sh")]


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if page_script(path)], ids=lambda path: str(path.relative_to(ROOT))
)
def test_the_code_of_the_documents_runs_and_prints_what_it_says(path, tmp_path):
    """One script a page, in order; every `# → text` beside a print must be a line that it prints."""
    blocks = page_script(path)
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks))
    here = os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    finished = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=here, capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    printed = finished.stdout.splitlines()
    for promised in re.findall(r"# → (.*)", "\n".join(blocks)):
        assert promised in printed, f"{promised!r} is not among {printed}"


def shown_commands():
    """Every command line of tacit in the documents, by page."""
    for path in DOCUMENTS:
        for _, text in blocks_of(path, "sh"):
            for line in text.replace("\\\n", " ").splitlines():
                if line.startswith("tacit "):
                    yield path.name, shlex.split(re.split(r" (?:\|\||&&) ", line)[0])[1:]


def test_the_commands_of_the_documents_have_the_options_they_are_shown_with():
    seen = set()
    for page, words in shown_commands():
        name = " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS else words[0]
        known = {option for parameter in COMMANDS[name].params for option in parameter.opts}
        given = {word for word in words if re.match(r"--?[a-z]", word)}
        assert given <= known, f"{page}: tacit {name} has no {', '.join(sorted(given - known))}"
        seen.add(name)
    assert seen == set(COMMANDS)


def names_of_tests(path):
    return {
        node.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_theorem_names_tests_that_check_it():
    for module, functions in theorems().items():
        if module in APPLIED:
            continue
        page = ROOT / "docs" / "proofs" / f"{module.rpartition('.')[2]}.md"
        checked = []
        for section in re.split(r"^(?=#)", page.read_text(), flags=re.MULTILINE):
            stated = re.findall(r"\[`(\w+)`\]\(\.\./reference", section)
            assert not stated or "*Checked by* `test_" in section, f"{page.name}: nothing checks {', '.join(stated)}"
            checked += stated
        assert sorted(checked) == functions, page.name


def test_the_tests_that_documents_name_exist():
    for path in DOCUMENTS:
        for names, file in re.findall(r"\*Checked by\* (.*) in `(.*?)`", path.read_text()):
            missing = set(re.findall(r"`(\w+)`", names)) - names_of_tests(ROOT / file)
            assert not missing, f"{path.name}: {file} has no {', '.join(missing)}"


def test_the_reference_shows_every_public_room():
    pages = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    shown = set(re.findall(r"^::: (\S+)", pages, flags=re.MULTILINE))
    public = {f"tacit.{room}" for room in ("reconstruction", "learning", "audit", "report", "ledger", "entropy")}
    assert {"tacit", *public, *(module for module in theorems() if module not in APPLIED)} <= shown


def test_the_readme_shows_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
