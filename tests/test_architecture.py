"""The house rules that code can hold: import directions, public surface, documentation, light imports."""

import ast
import functools
import inspect
import json
import pkgutil
import re
import shlex
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest
from soundness import theorems
from typer.main import get_command

import tacit
from tacit import cli

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tacit"

# A room may import those of lower floors; rooms of one floor never import one another.
FLOORS = [
    {"core"},
    {"theory", "runtime"},
    {"report"},
    {"certificate"},
    {"ledger"},
    {"reconstruction", "learning", "audit"},
    {"demo", "reproduce", "service"},
    {"cli"},
    {"__main__"},
    {"guarantee", "entropy", "errors"},  # earlier names of modules, until the next version
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
FRONT_DOOR = "__init__"
"""Names the rooms below; all may ask it for the version number."""
# Foreign packages that only some rooms may import at all, wherever in a file the import stands.
APPLIED = {
    f"tacit.reconstruction.{name}"
    for name in ("unbiased", "two_point", "identification", "twin_search", "bayes", "posterior_bounds", "texts")
}
"""Modules that apply the theorems of others to a model."""

ONLY_IN = {
    "cryptography": {"certificate", "service"},
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "sklearn": {"audit", "demo", "learning", "reconstruction", "reproduce", "service"},
    "opendp": {"runtime"},
    "sqlalchemy": {"ledger"},
    "sqlite3": {"ledger"},
    "dask": {"runtime"},
    "distributed": {"runtime"},
    "joblib": {"learning", "runtime"},
    "ray": {"runtime"},
    "skops": {"learning"},
    "pyarrow": {"runtime", "service"},
    "fastapi": {"service"},
    "httpx": {"service"},
    "prometheus_client": {"service"},
    "uvicorn": {"service"},
    "typer": {"cli"},
    "rich": {"cli"},
    "torch": {"audit", "demo", "learning", "reconstruction", "reproduce", "runtime", "theory"},
    "timm": {"learning"},
    "torchvision": {"learning", "reproduce"},
    "transformers": {"learning", "reconstruction"},
}


def room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@functools.cache
def import_statements(path):
    """Every import of a file, wherever it stands."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports(path):
    """(room of tacit or None, foreign package or None) for every import of a file."""
    package = ["tacit", *path.relative_to(SOURCE).parts[:-1]]
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            # `from . import name` may name a room or a public name of the package itself.
            modules = [f"{module}.{alias.name}" if module == "tacit" else module for alias in node.names]
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
        if other not in (None, own, FRONT_DOOR) and own != FRONT_DOOR:
            assert FLOOR[other] < FLOOR[own], f"{own} imports {other}"
        if foreign in ONLY_IN:
            assert own in ONLY_IN[foreign], f"{own} imports {foreign}"


def modules_imported(path):
    """Files of tacit that a file imports."""
    package = path.relative_to(SOURCE.parent).parts[:-1]
    for node in import_statements(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = SOURCE.parent.joinpath(*package[: len(package) - node.level + 1])
            base = base.joinpath(*(node.module or "").split(".")) if node.module else base
            for alias in node.names:
                for found in (base / f"{alias.name}.py", base / alias.name / "__init__.py", base.with_suffix(".py")):
                    if found.exists():
                        yield found
                        break
                else:
                    yield base / "__init__.py"


def test_no_files_import_one_another():
    """Nor in a longer circle. A package's face, which hands names on, does not count."""
    faces = {path for path in FILES if path.name == "__init__.py"}
    left = {path: set(modules_imported(path)) - faces - {path} for path in FILES if path not in faces}
    while left:
        free = {path for path, needed in left.items() if not needed & set(left)}
        assert free, f"a circle among {sorted(str(path.relative_to(SOURCE)) for path in left)}"
        left = {path: needed for path, needed in left.items() if path not in free}


def test_a_library_does_not_know_its_command():
    """What a command does with a part lives in its study, which nothing else of that part imports."""
    for part in ("reconstruction", "learning", "audit"):
        for path in (SOURCE / part).rglob("*.py"):
            if path.parent.name != "study" and path.name != "__init__.py":
                assert not any(found.parent.name == "study" for found in modules_imported(path)), path


def test_the_architecture_page_draws_the_floors():
    page = (ROOT / "docs" / "architecture.md").read_text()
    drawn = re.findall(r"^  (\w+)(?:\.py|/) ", page, flags=re.MULTILINE)
    assert sorted(drawn) == sorted({*FLOOR, FRONT_DOOR} - FLOORS[-1] - {"__main__"})
    assert {room(path) for path in FILES} == {*FLOOR, FRONT_DOOR}
    (told,) = re.findall(r"^Layers, from the top: (.*)$", page, flags=re.MULTILINE)
    floors = [set(re.findall(r"`(\w+)`", floor)) for floor in told.split("→")]
    assert floors == FLOORS[-3::-1]
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", page)
    assert len(named) > 15
    assert [name for name in named if not any((place / name).exists() for place in (SOURCE, ROOT))] == [
        "study/texts.py",
        "study/run.py",
    ]


def test_the_core_needs_the_standard_library_alone():
    for path in (SOURCE / "core").glob("*.py"):
        foreign = {package for _, package in imports(path) if package}
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


def test_storing_teachers_does_not_load_torch():
    """Which takes longer than most commands; nothing stays hidden from those who import it afterwards."""
    script = (
        "import sys\nfrom tacit.learning.stored import needed\nneeded()\n"
        "print([name for name, module in sys.modules.items() if name in ('torch', 'dask') or module is None])"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"


def test_the_front_door_offers_what_it_says():
    assert sorted(tacit.__all__) == tacit.__all__ == dir(tacit)
    for name in tacit.__all__:
        assert getattr(tacit, name) is not None
        assert name == "__version__" or f"`{name}`" in (ROOT / "docs" / "reference" / "tacit.md").read_text(), name
    needed = {"TYPE_CHECKING", "Any", "annotations", "import_module", "version"}
    held = {name for name, value in vars(tacit).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert held - needed <= set(tacit.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        tacit.nothing  # noqa: B018


@pytest.mark.parametrize("name", ["tacit.guarantee", "tacit.entropy", "tacit.errors"])
def test_modules_that_moved_are_found_under_their_earlier_names(name):
    sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match=f"{name} is tacit\\."):
        module = import_module(name)
    assert hasattr(module, {"guarantee": "safe_text", "entropy": "discrete_laplace", "errors": "InputError"}[name[6:]])


FILES_OF = {"bound": tacit.bound_files, "learn": tacit.learn_files, "audit": tacit.audit_file}


@pytest.mark.parametrize("name", FILES_OF)
def test_a_command_and_its_function_have_the_same_defaults(name):
    """But for what belongs to a terminal: where a report goes, pictures for it, and how an address is meant.

    `tacit bound --text` calls another function, which takes options of its own.
    """
    of_texts = {"text", "column", "attribute"} if name == "bound" else set()
    offered = {one.name: one for one in COMMANDS[name].params if not getattr(one, "hidden", False)}
    assert of_texts <= set(offered) & set(inspect.signature(tacit.bound_texts_files).parameters)
    taken = inspect.signature(FILES_OF[name]).parameters
    files = {"json", "report", "certificate", "reveal_draws", "commit_counts", "subject"}
    assert set(offered) - {*files, "quiet", "insecure"} - of_texts == set(taken) - {
        "advance",
        "progress",
        "pictures",
    }
    for option, parameter in taken.items():
        if parameter.default is not inspect.Parameter.empty and option in offered:
            default = offered[option].default
            assert (default or None) == (parameter.default or None), option


CALLED = {
    "bound": ("reconstruction.bound", "reconstruction.bound_texts_files"),
    "plan": ("learning.plan", "learning.study.plan.report"),
    "learn": ("learning.PrivateClassifier",),
    "audit": ("audit.audit", "audit.certify"),
    "ledger": ("ledger.statement",),
    "verify": ("certificate.verify",),
    "serve": ("service.session.open_session", "service.run.server"),
    "query": ("service.client.query_file", "service.client.Client"),
    "token add": ("service.tokens.Tokens.add",),
    "reproduce hcr": ("reproduce.hcr.Task",),
    "reproduce mapl": ("reproduce.mapl.Task",),
    "reproduce mechanisms": ("reproduce.mechanisms.Task",),
    "reproduce audit": ("reproduce.finite.Task", "reproduce.audits.Task"),
}
"""What else commands call, or what does the same in Python."""


@pytest.mark.parametrize("name", CALLED)
def test_all_functions_behind_a_command_have_its_defaults(name):
    """Options without a default of their own are left to the function."""
    offered = {one.name: one.default for one in COMMANDS[name].params if one.default is not None}
    for function in map(pkgutil.resolve_name, (f"tacit.{called}" for called in CALLED[name])):
        taken = inspect.signature(function).parameters
        shared = {key for key in offered if key in taken and taken[key].default is not inspect.Parameter.empty}
        assert shared, function
        assert {key: offered[key] for key in shared} == {key: taken[key].default for key in shared}, function


def test_every_theorem_states_what_it_claims():
    for module, functions in theorems().items():
        assert functions, f"{module} holds no theorem"
        for name in functions:
            function = getattr(import_module(module), name)
            assert function.side in ("at_least", "at_most")
            if module in APPLIED:
                continue
            text = inspect.getdoc(function)
            for part in ("Parameters\n---", "Returns\n---", "Notes\n---", "References\n---"):
                assert f"\n\n{part}" in text, f"{module}.{name} lacks {part}"
            for part in ("Statement.", "Assumptions.", "Direction."):
                assert f"\n{part} " in text, f"{module}.{name} lacks {part}"
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
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of modules by their earlier names
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
            for option in parameter.opts if not getattr(parameter, "hidden", False) else ():
                assert f"`{option}" in page, f"docs/command-line.md does not explain {name} {option}"


def test_every_command_has_the_common_options():
    """But for those about a service, which compute no results."""
    for name, command in COMMANDS.items():
        if name.split()[0] in ("serve", "query", "token"):
            continue
        options = {option for parameter in command.params for option in parameter.opts}
        assert {"--json", "--report", "--quiet"} <= options, name


DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks_of(path, *languages):
    return re.findall(rf"^```({'|'.join(languages)})\n(.*?)^```", path.read_text(), flags=re.DOTALL | re.MULTILINE)


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
    public = {
        f"tacit.{room}" for room in ("reconstruction", "learning", "audit", "report", "ledger", "runtime.entropy")
    }
    assert {"tacit", *public, *(module for module in theorems() if module not in APPLIED)} <= shown


def test_the_readme_shows_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
