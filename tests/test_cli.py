"""The command line as people run it: exit codes, one-line errors, and nothing lost."""

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from commands import assert_one_line_error, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pages import comparison, report

from tacit import InputError, __version__, cli
from tacit.cli import delivery
from tacit.cli.progress import Pace
from tacit.ledger import Ledger


def test_version():
    finished = run("--version")
    assert (finished.returncode, finished.stdout.strip()) == (0, f"tacit {__version__}")


def test_help_names_the_commands_and_exit_codes():
    finished = run("--help")
    assert finished.returncode == 0
    assert "demo" in finished.stdout
    assert "Exit codes" in finished.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("--nonsense",),
        ("nonsense",),
        ("demo", "--nonsense"),
        ("demo", "extra"),
        ("demo", "--json"),
        ("demo", "--report", "page.txt"),
        ("demo", "--report", "no/such/folder/page.html"),
        ("demo", "--json", "."),
        ("demo", "--json", "x" * 5000),
        ("demo", "--report", "same.html", "--json", "same.html"),
    ],
)
def test_bad_usage_is_one_line(arguments, tmp_path, here):
    assert_one_line_error(here(tmp_path, *arguments))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that not even root can write to")
def test_a_folder_that_cannot_be_written_is_one_line():
    assert_one_line_error(run("demo", "--quiet", "--json", "/proc/self/out.json"))


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arguments=st.lists(
        st.sampled_from(["demo", "--json", "--report", "--quiet", "-q", "--version=1", "", "-", "--", "--json="])
        | st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20),
        min_size=1,
        max_size=4,
    )
)
def test_no_arguments_whatever_end_in_a_traceback(arguments, capsys, monkeypatch, parser, tmp_path):
    """The demo itself is cut short here: this is about what happens before any work."""
    from tacit import demo

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "app", parser)
    monkeypatch.setattr(demo, "demo", lambda **_: report(comparison()))
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    output = capsys.readouterr()
    assert end.value.code in (0, 2)
    assert "Traceback" not in output.err
    if end.value.code == 2:
        assert output.err.startswith("tacit: error: ")
        assert output.err.count("\n") == 1


def deliver(made, json, page, *, quiet=False):
    with delivery.delivery(json, page, quiet=quiet) as hand_over:
        hand_over(made)


def test_a_contradiction_exits_with_1_after_everything_is_written(tmp_path, capsys):
    json, page = tmp_path / "out.json", tmp_path / "out.html"
    with pytest.raises(typer.Exit) as end:
        deliver(report(comparison(attacked=0.9)), json, page)
    assert end.value.exit_code == 1
    assert '"contradicted": true' in json.read_text()
    assert "CONTRADICTED" in page.read_text()
    assert "CONTRADICTED" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.html", "out.json"]


def test_quiet_prints_nothing_and_still_writes(tmp_path, capsys):
    deliver(report(comparison()), tmp_path / "out.json", None, quiet=True)
    assert capsys.readouterr() == ("", "")
    assert (tmp_path / "out.json").exists()


def test_an_older_file_survives_a_failed_run(tmp_path):
    """The disk fills up while the new file is written."""
    old = tmp_path / "out.json"
    old.write_text("precious")
    with pytest.raises(InputError, match="must be writable"):
        _with_full_disk(lambda: delivery._write(old, "new" * 100_000))
    assert old.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def _with_full_disk(action):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        action()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_links_are_followed_and_modes_kept(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real)
    delivery._write(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert real.stat().st_mode & 0o777 == 0o600


def test_a_pipe_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["/bin/cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        delivery._write(pipe, "through")
        assert reader.communicate(timeout=10)[0] == "through"
    assert pipe.is_fifo()


def test_one_file_under_two_names_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    other = tmp_path / "folder" / ".." / "same.html"
    assert_one_line_error(run("demo", "--json", str(tmp_path / "same.html"), "--report", str(other)))


def test_nothing_but_an_earlier_result_is_replaced(tmp_path):
    """A ledger, a key, an anchor, a table: whatever lies under the name of a result stays."""
    made = report(comparison())
    for name, content in {
        "l.json": b"SQLite format 3\0",
        "a.json": b'{"id": 3, "digest": "00"}',
        "k.json": b"k" * 32,
        "t.html": b"a,b\n1,2\n",
    }.items():
        path = tmp_path / name
        path.write_bytes(content)
        pair = (path, None) if path.suffix == ".json" else (None, path)
        with (
            pytest.raises(InputError, match=r"--(json|report) must be new, or "),
            delivery.delivery(*pair, quiet=True),
        ):
            pytest.fail("there was work before the refusal")
        assert path.read_bytes() == content
    json, page = tmp_path / "out.json", tmp_path / "out.html"
    json.touch()  # holds nothing that could be lost
    for _ in range(2):
        deliver(made, json, page, quiet=True)
    assert json.read_text() == made.to_json()
    run_of_its_own = contextlib.ExitStack()
    run_of_its_own.enter_context(delivery.delivery(json, None, quiet=True))(made)
    json.write_bytes(b"made by the run itself")
    with pytest.raises(InputError, match="must be new"):
        run_of_its_own.close()
    assert json.read_bytes() == b"made by the run itself"
    os.link(page, tmp_path / "also.html")
    with pytest.raises(InputError, match="must differ from --report"):
        deliver(made, tmp_path / "also.html", page)


def test_no_input_is_replaced_by_a_result(tmp_path, here):
    """Also where it would pass for a result, is reached by links, or is not there yet."""
    ledger, link, hard = tmp_path / "l.db", tmp_path / "link.json", tmp_path / "hard.json"
    Ledger.open(ledger, epsilon=2, delta=0, anchor=tmp_path / "anchor.json").spend("x", epsilon=1)
    earlier = tmp_path / "earlier.json"
    assert here(tmp_path, "ledger", ledger, "--json", earlier, "--quiet").returncode == 0
    link.symlink_to(ledger)
    os.link(ledger, hard)
    before = {path: path.read_bytes() for path in (ledger, tmp_path / "anchor.json", earlier)}
    anchored = (str(ledger), "--anchor", str(tmp_path / "anchor.json"))
    for arguments in (
        ("ledger", str(ledger), "--json", str(ledger)),
        ("ledger", str(ledger), "--json", str(link)),
        ("ledger", str(ledger), "--json", str(hard)),
        ("ledger", *anchored, "--json", str(tmp_path / "anchor.json")),
        ("ledger", str(ledger), "--key", str(earlier), "--json", str(earlier)),
        ("audit", str(earlier), "--secret", "a", "--output", "b", "--json", str(earlier)),
        ("bound", f"{earlier}:f", "--data", "x", "--noise", "gaussian:1", "--out", "o", "--json", str(earlier)),
        ("reproduce", "hcr", "mnist", "--out", "o", "--weights", str(earlier), "--json", str(earlier)),
    ):
        finished = here(tmp_path, *arguments)
        assert_one_line_error(finished)
        assert "must not be a file that the command reads or keeps" in finished.stderr
    learned = ("learn", "p.csv", "--label", "y", "--epsilon", "1", "--delta", "1e-5", "--out", "o")
    for arguments in (
        ("--ledger", "new.db", "--new-ledger", "--json", "new.db"),
        ("--anchor", "new.json", "--json", "new.json"),
        ("--json", "o/ledger.sqlite"),
        ("--json", "p.csv"),
    ):
        finished = here(tmp_path, *learned, *arguments)
        assert_one_line_error(finished)
        assert "must not be a file" in finished.stderr
    assert {path: path.read_bytes() for path in before} == before


STAND_IN = """
import sys, types
from pages import comparison, report
from tacit import cli
def stand_in(**_):
    {body}
sys.modules["tacit.demo"] = types.SimpleNamespace(demo=stand_in, SECONDS=(1,))
cli.main(["demo"])
"""
SMALL = STAND_IN.format(body="return report(comparison(), title='ε is small')")


def run_stand_in(code=SMALL, *, env=None, **options):
    """The real command line around a demo that ends at once, and that loads none of the packages of the real one."""
    tests = Path(__file__).resolve().parent
    path = os.pathsep.join([str(tests / "support"), str(tests.parent / "src")])
    environment = {**os.environ, "PYTHONPATH": path, **(env or {})}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, stderr=subprocess.PIPE, check=False, timeout=600, **options)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_stdout_is_one_line():
    with open("/dev/full", "w") as full:
        finished = run_stand_in(stdout=full)
    assert finished.returncode == 2
    assert finished.stderr.startswith(b"tacit: error: ")
    assert finished.stderr.count(b"\n") == 1


def test_a_reader_who_leaves_early_is_no_failure():
    read, write = os.pipe()
    os.close(read)
    finished = run_stand_in(stdout=write)
    os.close(write)
    assert (finished.returncode, finished.stderr) == (0, b"")


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes streams")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_leave_the_verdict_and_the_files(tmp_path, closed):
    """Nor does a file that is opened next take the place of standard output."""
    (tmp_path / "t.csv").write_text("secret,output\n" + "a,x\nb,x\n" * 2000)
    ledger = Ledger.open(tmp_path / "l.db", epsilon=1, delta=0)
    audit = "audit t.csv --secret secret --output output --attack-rows 0 --require-advantage 0.0001"
    lines = {"ledger none.db": 2, "ledger l.db --json out.json": 0}
    if closed.startswith("<"):
        lines[audit] = 1
    for line, code in lines.items():
        script = ["/bin/sh", "-c", f'"{sys.executable}" -m tacit {line} {closed}']
        finished = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert finished.returncode == code, (line, finished)
        assert "Traceback" not in finished.stderr
        if code == 2 and "2>" not in closed:
            assert finished.stderr.count("\n") == 1
    assert (tmp_path / "out.json").read_text().startswith("{")
    ledger.verify()


ENDS = {
    "return report(comparison(), met=False)": 1,
    "return report(comparison(attacked=0.9))": 1,
    "raise RuntimeError('Jane Doe')": 70,
    "raise KeyError('Jane Doe')": 70,
    "raise RecursionError": 70,
    "raise MemoryError": 70,
    "raise SystemExit(1)": 70,
    "raise SystemExit": 70,
    "raise KeyboardInterrupt": 130,
    "raise BrokenPipeError": 0,
}
FORKS = f"""
import os, sys, types
from pages import comparison, report
from tacit import cli
for number, body in enumerate({list(ENDS)!r}):
    child = os.fork()
    if not child:
        os.dup2(os.open(f"{{number}}.txt", os.O_CREAT | os.O_WRONLY), 2)
        exec("def stand_in(**_): " + body)
        sys.modules["tacit.demo"] = types.SimpleNamespace(demo=stand_in, SECONDS=(1,))
        cli.main(["demo"])
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=sys.stderr)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that begin as copies of another")
def test_1_says_that_a_requirement_is_not_met_and_nothing_else(tmp_path):
    """The process of each is a copy of one that has loaded what they need."""
    read, write = os.pipe()
    os.close(read)  # nobody reads: the verdict stays
    finished = run_stand_in(code=FORKS, cwd=tmp_path, stdout=write, text=True)
    os.close(write)
    assert finished.stderr.split() == [str(code) for code in ENDS.values()]
    for number, (body, code) in enumerate(ENDS.items()):
        said = (tmp_path / f"{number}.txt").read_text()
        assert said.count("\n") == (code in (70, 130)), body
        assert "Traceback" not in said
        assert "Jane" not in said


def test_a_terminal_that_cannot_show_a_letter_shows_something_else():
    finished = run_stand_in(stdout=subprocess.PIPE, env={"PYTHONIOENCODING": "latin-1"})
    assert finished.returncode == 0
    assert b"? is small" in finished.stdout


INTERRUPTED_TRAINING = """
import signal
from torch import nn

forward = nn.Linear.forward

def interrupted(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
    return forward(*arguments)

nn.Linear.forward = interrupted
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
"""


def test_an_interrupted_run_ends_with_130_and_writes_nothing(tmp_path, warm):
    finished = warm.run(tmp_path, "demo", "--json", "out.json", "--quiet", before=INTERRUPTED_TRAINING)
    assert (finished.returncode, finished.stdout, finished.stderr) == (130, "", "tacit: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_results_are_as_readable_as_any_new_file(tmp_path):
    tmp_path.chmod(0o755)  # in a folder that is closed to others, so are they
    delivery._write(tmp_path / "out.json", "{}")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "out.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


FAILS = """
import sys, types
from tacit import cli
def fails(**_):
    try:
        raise KeyError("Jane Doe, born 1970")
    except KeyError as failure:
        raise RuntimeError("Jane Doe again") from failure
sys.modules["tacit.demo"] = types.SimpleNamespace(demo=fails, SECONDS=(1,))
cli.main(["demo", "--json", "Jane.json"])
"""


def test_a_failure_of_ours_leaves_a_private_file_for_a_report(tmp_path):
    """With the lines of code that led there, and no value."""
    command = [sys.executable, "-c", FAILS]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert finished.returncode == 70
    (written,) = tmp_path.glob("tacit-error-*.txt")
    assert f"please report this line and {written}" in finished.stderr
    assert finished.stderr.count("\n") == 1
    assert written.stat().st_mode & 0o777 == 0o600
    told = written.read_text()
    assert "builtins.RuntimeError" in told
    assert "builtins.KeyError" in told
    assert "in fails" in told
    assert f"tacit {__version__}" in told
    assert "Jane" not in told + finished.stderr.replace("Jane.json", "")


def test_a_terminal_is_never_steered(tmp_path, here):
    """ANSI escapes and turned directions in names of columns, labels, files and arguments are shown as a mark."""
    evil = "\x1b[31m\x1b]0;owned\x07\u202e\x9b"
    (tmp_path / f"{evil}.csv").write_text(f"s,{evil}\n" + f"{evil},1\nplain,2\n" * 50)
    audit = ("audit", f"{evil}.csv", "--secret", "s", "--attack-rows", "0")
    for extra in (("--output", evil), ("--output", "nowhere"), ("--output", f"{evil}?"), ("--output", evil, evil)):
        finished = here(tmp_path, *audit, *extra, "--json", f"{evil}.json")
        assert finished.returncode == (2 if extra != ("--output", evil) else 0), finished.stderr
        assert not set(finished.stdout + finished.stderr) & set(evil) - set("[31m]0;owned")
        assert finished.returncode or "�" in finished.stdout


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link to a device"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "x.csv", "--secret", "a", "--output", "b"),
        ("audit", "x.parquet", "--secret", "a", "--output", "b"),
        *(
            ("learn", f"x.{kind}", "--labels-only", "--label", "a", "--epsilon", "1", "--delta", "1e-5", "--out", "out")
            for kind in ("csv", "parquet", "npz")
        ),
        ("bound", "m.py:f", "--data", "x.npy", "--noise", "gaussian:1", "--out", "out"),
        ("bound", "m.py:f", "--data", "x.npz", "--noise", "gaussian:1", "--out", "out"),
        ("bound", "m.py:f", "--data", "d.npy", "--weights", "x.pt", "--noise", "gaussian:1", "--out", "out"),
        ("bound", "m.py:f", "--data", "d.npy", "--weights", "x.safetensors", "--noise", "gaussian:1", "--out", "out"),
        ("bound", "x.py:f", "--data", "d.npy", "--noise", "gaussian:1", "--out", "out"),
        ("bound", "m.py:f", "--data", "images", "--noise", "gaussian:1", "--out", "out"),
        ("ledger", "x.sqlite"),
    ],
    ids=" ".join,
)
def test_what_is_no_plain_file_is_one_line_at_once(tmp_path, here, arguments, kind):
    """On a pipe that nobody writes to, or a device without end, these once waited for ever."""
    np.save(tmp_path / "d.npy", np.arange(6.0).reshape(2, 3))
    (tmp_path / "m.py").write_text("from torch import nn\ndef f():\n    return nn.Linear(3, 2)\n")
    (tmp_path / "images").mkdir()
    named = next((one.partition(":")[0] for one in arguments if one.startswith("x.")), "images/x.png")
    path = tmp_path / named
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
        (path / "inner").mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else "/dev/tty")

    def too_long(*_):
        pytest.fail("waits")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(60)
    try:
        assert_one_line_error(here(tmp_path, *arguments))
    finally:
        signal.alarm(0)
    assert not (tmp_path / "out").exists()


def test_a_bar_goes_on_by_the_clock_between_two_lines():
    """One step may take a minute: the bar neither stands still meanwhile, nor goes back, nor ends before the run."""
    now = [0.0]
    pace = Pace(120.0, clock=lambda: now[0])
    now[0] = 30.0
    assert (pace.percent, pace.left) == (25.0, "about 2 minutes left")
    pace.told(20, 160.0)  # behind what was shown
    assert pace.percent == 25.0
    now[0] = 70.0
    assert (pace.percent, pace.left) == (40.0, "about 2 minutes left")
    now[0] = 1000.0
    assert (pace.percent, pace.left) == (99.0, "a little longer")


def test_a_bar_of_which_nothing_is_known_promises_nothing():
    now = [0.0]
    pace = Pace(None, clock=lambda: now[0])
    now[0] = 50.0
    assert (pace.percent, pace.left) == (0.0, "")
    pace.told(50, None)
    assert (pace.percent, pace.left) == (50.0, "a little longer")


def test_on_a_terminal_the_bar_shows_percent_time_and_step():
    script = (
        "import time\nfrom tacit.cli.progress import progress\n"
        "with progress(quiet=False) as advance:\n"
        "    advance('40 % done, about 3 minutes left: counting [b]')\n    time.sleep(0.6)\n"
    )
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    subprocess.run([sys.executable, "-c", script], stderr=theirs, env=environment, check=True)
    os.close(theirs)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", os.read(ours, 1 << 16).decode())
    os.close(ours)
    assert re.search(r"4\d % +about 3 minutes left +counting \[b\]", shown)
