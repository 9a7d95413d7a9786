"""Damaged and hostile files for every command that reads one: `python tests/fuzz/fuzzer.py --cases 100000`.

Each case is made from the seed and its number alone. It passes if the command ends in time with 0, or with 2 and one
line on stderr, prints nothing that a terminal obeys, and, where it goes on from kept batches, gives the numbers of the
whole run or refuses. Cases run in a process of their own, which is started again where one of them kills it.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unicodedata
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SECONDS = 30
"""After which a command hangs."""
MEMORY = 12 * 2**30
"""Bytes of address space that a command may take; torch alone takes several."""
ESCAPE = "\x1b[31m\x1b]0;owned\x07\u202e"
"""Colours, the title of the window, and the direction of writing."""

MODEL = """
from torch import nn

def features():
    return nn.Sequential(nn.Flatten(), nn.Linear(9, 4), nn.Tanh()).double()
"""
BOUND = ("--noise", "gaussian:1", "--limit", "2", "--feature-error", "1e-13", "--method", "identify")  # draws nothing
AUDIT = ("--secret", "member", "--output", "score", "--attack-rows", "0")
LEARN = ("--label", "sort", "--epsilon", "30", "--delta", "1e-5", "--teachers", "3", "--mechanism", "gnmax")
LEARN += ("--queries", "5", "--learner", "sklearn.naive_bayes:GaussianNB")
READ = (*LEARN[:-1], "sklearn.naive_bayes:Nothing")  # refused as soon as the tables are read, in a tenth of the time


@dataclass(frozen=True)
class Kind:
    """A file to damage, the command that reads it, and how often it is drawn."""

    file: str
    command: tuple[str, ...]
    weight: int
    kept: bool = False


KINDS = (
    Kind("data.npy", ("bound", "model.py:features", "--weights", "w.safetensors", "--data", "FILE", *BOUND), 20),
    Kind("data.npz", ("bound", "model.py:features", "--weights", "w.safetensors", "--data", "FILE", *BOUND), 20),
    Kind("images/b.png", ("bound", "model.py:features", "--data", "images", *BOUND), 6),
    Kind("model.py", ("bound", "FILE:features", "--data", "data.npy", *BOUND), 4),
    Kind("w.safetensors", ("bound", "model.py:features", "--weights", "FILE", "--data", "data.npy", *BOUND), 10),
    Kind("w.pt", ("bound", "model.py:features", "--weights", "FILE", "--data", "data.npy", *BOUND), 10),
    Kind("t.csv", ("audit", "FILE", *AUDIT), 20),
    Kind("t.parquet", ("audit", "FILE", *AUDIT), 20),
    Kind("p.csv", ("learn", "FILE", "--labels-only", *READ), 8),
    Kind("p.parquet", ("learn", "FILE", "--labels-only", *READ), 10),
    Kind("p.npz", ("learn", "FILE", "--labels-only", *READ), 10),
    Kind("public.npz", ("learn", "p.npz", "--public", "FILE", *READ), 5),
    Kind("p.npz", ("learn", "FILE", "--labels-only", *LEARN), 1),
    Kind("p.csv", ("learn", "FILE", "--labels-only", *LEARN), 1),
    Kind("l.sqlite", ("ledger", "FILE"), 15),
    Kind("done/multi-point-00000.npy", (), 10, kept=True),
    Kind("done/task.json", (), 3, kept=True),
)
RESUMED = ("bound", "model.py:features", "--weights", "w.safetensors", "--data", "data.npy", *BOUND[:-1], "multi-point")


def bases(folder: Path) -> None:
    """Good files, small, of every kind."""
    import pyarrow as pa
    import torch
    from PIL import Image
    from pyarrow import csv, parquet
    from safetensors.torch import save_file
    from torch import nn

    from tacit.ledger import Ledger

    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    inputs = rng.uniform(size=(6, 9))
    np.save(folder / "data.npy", inputs)
    np.savez_compressed(folder / "data.npz", x=inputs)
    (folder / "images").mkdir()
    for name in "abc":
        Image.fromarray(rng.integers(0, 255, (3, 3), dtype=np.uint8)).save(folder / "images" / f"{name}.png")
    (folder / "model.py").write_text(MODEL)
    state = nn.Sequential(nn.Flatten(), nn.Linear(9, 4)).double().state_dict()
    save_file(state, folder / "w.safetensors")
    torch.save(state, folder / "w.pt")
    member = np.arange(300) % 2
    table = pa.table({"member": np.array(["no", "yes"])[member], "score": np.round(rng.normal(size=300), 2)})
    csv.write_csv(table, folder / "t.csv")
    parquet.write_table(table, folder / "t.parquet")
    points, sort = rng.normal(size=(60, 3)), np.array(["a", "b"])[np.arange(60) % 2]
    private = pa.table({"x": points[:, 0], "y": points[:, 1], "sort": sort})
    csv.write_csv(private, folder / "p.csv")
    parquet.write_table(private, folder / "p.parquet")
    np.savez(folder / "p.npz", X=points, sort=sort)
    np.savez(folder / "public.npz", X=rng.normal(size=(20, 3)))
    ledger = Ledger.open(folder / "l.sqlite", epsilon=10, delta=1e-3)
    for what in ("first", "second"):
        entry = ledger.spend(what, epsilon=1, delta=1e-5, detail={"neighbours": "one record"})
        ledger.note(entry, {"points": [1], "answers": [0]}, number=1)


def damaged(good: bytes, other: bytes, dice: random.Random) -> bytes:
    """The bytes with a few faults of the kinds that disks, editors and enemies make."""
    found = bytearray(good)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        place, length = dice.randrange(len(found) + 1), dice.choice((1, 2, 4, 8, 64))
        fault = dice.randrange(11)
        if fault == 0 and found:
            found[place % len(found)] ^= 1 << dice.randrange(8)
        elif fault == 1:
            found[place : place + length] = dice.randbytes(length)
        elif fault == 2:
            del found[place:]
        elif fault == 3:
            del found[place : place + length]
        elif fault == 4:
            found[place:place] = dice.randbytes(length)
        elif fault == 5:
            found[place:place] = found[place : place + 200]
        elif fault == 6:
            found[place : place + length] = b"\xff" * length
        elif fault == 7:
            found[place:place] = dice.choice((b"\0", b'"', b"\n", b",", b"\x1b[2J", b"NaN", b"1e999", "‮".encode()))
        elif fault == 8:  # a number becomes a very large one, a negative one, or none
            digits = [match.span() for match in re.finditer(rb"\d+", bytes(found))]
            if digits:
                first, last = dice.choice(digits)
                found[first:last] = dice.choice((b"9" * 18, b"-1", b"2000000000", b"0", b"4294967296", b""))
        elif fault == 9:
            found[place:] = other[min(place, len(other)) :]
        else:
            found[place : place + length] = b"\0" * length
    return bytes(found)


def hostile_npy(dice: random.Random) -> bytes:
    """A header that lies, or a type that nobody expects."""
    shape = dice.choice(("(2000000000,)", "(6, 9)", "(0, 9)", "(-1, 9)", "()", "(1" + ", 1" * 70 + ")", "(6, 10**9)"))
    kind = dice.choice(("<f8", "|O", "|V0", "<U0", "<U3", "<c16", "<M8[s]", "|b1", ">f4", "<f2", "<g", "|S0", "zz"))
    header = f"{{'descr': '{kind}', 'fortran_order': {dice.choice(('False', 'True', '3'))}, 'shape': {shape}, }}"
    header = header.ljust(dice.choice((118, 50, 20000))) + "\n"
    version = dice.choice((b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x00"))
    size = len(header).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + size + header.encode() + dice.randbytes(dice.choice((0, 8, 432, 5000)))


def hostile_npz(dice: random.Random) -> bytes:
    """Members that lie, that are no arrays, twice the same name, or much of nothing."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for _ in range(dice.randrange(3)):
            name = dice.choice(("X.npy", "x.npy", "y", f"{ESCAPE}.npy", "../x.npy", ""))
            with contextlib.suppress(ValueError):
                archive.writestr(zipfile.ZipInfo(name), hostile_npy(dice))
        if dice.random() < 0.2:
            zeros = io.BytesIO()
            np.save(zeros, np.zeros((6, 2 ** dice.choice((4, 18)))))
            archive.writestr("x.npy", zeros.getvalue())
    content = buffer.getvalue()
    if dice.random() < 0.3:  # the directory says that the first member has 2³¹ bytes
        place = content.find(b"PK\x01\x02")
        content = (
            content[: place + 24] + (2**31).to_bytes(4, "little") + content[place + 28 :] if place > 0 else content
        )
    return content


def hostile_csv(dice: random.Random) -> bytes:
    """Names and fields that steer a terminal, and lines that do not fit."""
    names = ["member", "score", "sort", "x", ESCAPE, "member", '"', "", "a" * 5000]
    head = ",".join(dice.sample(names, dice.randrange(1, 5)) + dice.sample(["member", "score"], 2))
    words = ["yes", "no", "1", "-0.0", "", "NaN", "1e400", ESCAPE, '"', '""', '"a,b"', "\0", "ü", "9" * 400]
    rows = [",".join(dice.choice(words) for _ in range(head.count(",") + 1)) for _ in range(dice.randrange(60))]
    return "\n".join([head, *rows]).encode(dice.choice(("utf-8", "utf-16", "utf-8-sig")), errors="replace")


def hostile_table(path: Path, dice: random.Random) -> None:
    """A Parquet file of types and names that nobody expects."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = dice.choice((0, 1, 40))
    columns: list[Any] = [
        pa.array(["yes", "no"] * rows),
        pa.array([1.5, None] * rows),
        pa.array([[1], [2, 3]] * rows),
        pa.array([b"\xff\x1b", b""] * rows),
        pa.array([ESCAPE, "plain"] * rows),
        pa.array([2**63 - 1, -1] * rows),
        pa.array([float("nan"), float("inf")] * rows),
        pa.array([None, None] * rows),
        pa.array([10**18, 1] * rows, pa.timestamp("ns")),
    ]
    names = ["member", "score", "sort", ESCAPE]
    parquet.write_table(pa.table(dice.sample(columns, len(names)), names=names), path)


@contextlib.contextmanager
def special(path: Path, dice: random.Random) -> Iterator[None]:
    """What is no file: pipes, devices, folders, sockets, links in circles, and nothing at all."""
    kind = dice.choice(("pipe", "zero", "null", "folder", "socket", "circle", "dangling", "unreadable", "nothing"))
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as server:
        if kind == "pipe":
            os.mkfifo(path)
        elif kind in ("zero", "null"):
            path.symlink_to(f"/dev/{kind}")
        elif kind == "folder":
            path.mkdir()
        elif kind == "socket":
            with contextlib.suppress(OSError):  # its path may be too long
                server.bind(os.path.relpath(path))
        elif kind == "circle":
            path.symlink_to(path)
        elif kind == "dangling":
            path.symlink_to("nowhere")
        elif kind == "unreadable":
            path.write_bytes(b"")
            path.chmod(0)
        yield


def case(number: int, seed: int, good: Path, folder: Path) -> tuple[str, list[str], Callable[[], Any]]:
    """What one case is about, its arguments, and what keeps its file there."""
    dice = random.Random(f"{seed} {number}")  # noqa: S311
    kind = dice.choices(KINDS, [one.weight for one in KINDS])[0]
    files = sorted(path for path in good.iterdir() if path.is_file())
    for path in files:
        (folder / path.name).symlink_to(path)
    for name in ("images", "done"):
        shutil.copytree(good / name, folder / name)
    target = folder / kind.file
    content, other = target.read_bytes(), dice.choice(files).read_bytes()
    target.unlink()  # a link, or a copy
    how = dice.random()
    hold: Callable[[], Any] = contextlib.nullcontext
    if how < 0.08:
        what, hold = "special", lambda: special(target, dice)
    elif how < 0.4 and target.suffix in (".npy", ".npz", ".csv", ".parquet") and not kind.kept:
        what = "hostile"
        if target.suffix == ".parquet":
            hostile_table(target, dice)
        else:
            make = {".npy": hostile_npy, ".npz": hostile_npz, ".csv": hostile_csv}[target.suffix]
            target.write_bytes(make(dice))
    else:
        what = "damaged"
        target.write_bytes(damaged(content, other, dice))
    arguments = [one.replace("FILE", kind.file) for one in (kind.command or RESUMED)]
    if arguments[0] == "audit" and dice.random() < 0.2:
        arguments[arguments.index("--output") + 1] = ESCAPE
    if arguments[0] in ("bound", "learn"):
        arguments += ["--resume", "--out", "done"] if kind.kept else ["--out", "out"]
    return f"{what} {kind.file}", arguments, hold


class Hang(BaseException):
    """Raised in a command that takes too long."""


def run_case(number: int, seed: int, good: Path, expected: Any) -> tuple[str, str | None]:
    """What the case was, and what was wrong with it, if anything."""
    from tacit import cli

    def too_long(*_: object) -> None:
        raise Hang

    with tempfile.TemporaryDirectory(prefix="case-") as name:
        os.chdir(name)
        what, arguments, hold = case(number, seed, good, Path(name))
        out, err = (open(one, "w+", encoding="utf-8") for one in ("stdout", "stderr"))  # noqa: SIM115
        before = sys.stdout, sys.stderr
        signal.signal(signal.SIGALRM, too_long)
        try:
            with hold():
                sys.stdout, sys.stderr = out, err
                signal.alarm(SECONDS)
                code: object = cli._run([*arguments, "--json", "result.json"])
        except Hang:
            code = "a hang"
        except BaseException as failure:
            code = f"{type(failure).__name__}: {failure}"
        finally:
            signal.alarm(0)
            sys.stdout, sys.stderr = before
        said = []
        for stream in (out, err):
            stream.close()
            said.append(Path(stream.name).read_text(encoding="utf-8", errors="replace"))
        wrong = judged(code, *said)
        if wrong is None and arguments[-1] == "done" and code == 0:
            found = json.loads(Path("result.json").read_text())["comparisons"]
            wrong = None if found == expected else "other numbers from kept batches"
        os.chdir("/")
    return f"{what}: {' '.join(arguments)!r}", wrong


def judged(code: object, out: str, err: str) -> str | None:
    """What is wrong with what a command said and how it ended."""
    steering = {
        character
        for character in out + err
        if character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    }
    if steering:
        return f"printed {steering}"
    # What is damaged may look like words among numbers, and that is told in a line of its own.
    err = re.sub(r"^tacit: warning: the columns .* are read as text, .*\n", "", err, flags=re.MULTILINE)
    if code == 2:
        fine = err.startswith("tacit: error: ") and err.count("\n") == 1 and not out
        return None if fine else f"2, and said {(out + err)[-300:]!r}"
    if code != 0:
        return f"ended with {code}: {err[-300:]!r}"
    fine = "written: |to publish: |never to publish: |writing the owner|training|trying"
    rest = [line for line in err.splitlines() if not re.match(fine, line)]
    return f"0, and said {rest!r}" if rest else None


def worker(arguments: argparse.Namespace) -> None:
    """Cases one after another, a line on stdout before and after each."""
    import resource

    import torch
    from typer.main import get_command

    from tacit import cli

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module=r"torch\..*")  # what torch says to a damaged model is between the two
    cli.app = get_command(cli.app)  # once, not in every case
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    speak = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    good = Path(arguments.folder)
    if not (good / "done").exists():
        bases(good)
        os.chdir(good)
        assert cli._run([*RESUMED, "--out", "done", "--quiet", "--json", "done.json"]) == 0
    expected = json.loads((good / "done.json").read_text())["comparisons"]
    tempfile.tempdir = str(good.parent)
    for number in range(arguments.first, arguments.cases):
        speak.write(f"{number}\n")
        began = time.monotonic()
        faulthandler.dump_traceback_later(2 * SECONDS, exit=True)  # where foreign code hangs, which hears no signal
        what, wrong = run_case(number, arguments.seed, good, expected)
        faulthandler.cancel_dump_traceback_later()
        speak.write(json.dumps([number, what, wrong, time.monotonic() - began]) + "\n")


def fuzz(cases: int, seed: int, first: int = 0) -> tuple[Counter[str], Counter[str], list[str]]:
    """How many cases of each kind were run, from `first` to `cases`, how long they took, and what was wrong."""
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="tacit-fuzz-") as place:
        good = Path(place) / "good"
        good.mkdir()
        while first < cases:
            begun = False
            command = [sys.executable, __file__, "--worker", "--folder", str(good), "--first", str(first)]
            command += ["--cases", str(cases), "--seed", str(seed)]
            environment = {**os.environ, "LOKY_MAX_CPU_COUNT": "1", "OMP_NUM_THREADS": "1"}
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
                for line in running.stdout or ():
                    found = json.loads(line)
                    begun = True
                    if isinstance(found, int):
                        first = found
                        continue
                    number, what, complaint, took = found
                    first = number + 1
                    counts[what.partition(":")[0]] += 1
                    seconds[what.partition(":")[0]] += took
                    if complaint:
                        wrong.append(f"case {number}, {what}: {complaint}")
                        print(wrong[-1], file=sys.stderr, flush=True)
            if first < cases:
                wrong.append(f"case {first} ended its process with {running.returncode}")
                print(wrong[-1], file=sys.stderr, flush=True)
                first += 1
                if not begun:
                    break
    return counts, seconds, wrong


def main() -> None:
    """The command line of this script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=2000, help="end before this case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="begin with this case")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments)
        return
    began = time.monotonic()
    counts, seconds, wrong = fuzz(arguments.cases, arguments.seed, arguments.first)
    for what, count in sorted(counts.items()):
        print(f"{count:8d} {what}, {seconds[what] / count:.2g} seconds each")
    print(f"{sum(counts.values())} cases, {len(wrong)} of them wrong, in {time.monotonic() - began:.0f} seconds")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
