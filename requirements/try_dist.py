"""`make dist`: installs each file of dist/ in an environment with what it asks for alone, and runs it there."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PINS = Path(__file__).resolve().parent / "dist.txt"


def ran(*command: object, folder: str) -> None:
    """Run a command, and end with its error if it fails."""
    done = subprocess.run(  # noqa: S603 — words from below
        [str(word) for word in command], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} exits with {done.returncode}: {done.stderr}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder, "Scripts" if sys.platform == "win32" else "bin")
        pip = (programs / "python", "-m", "pip", "--disable-pip-version-check")
        ran(*pip, "install", "--no-deps", "--require-hashes", "--requirement", PINS, folder=folder)
        for name in sys.argv[1:]:
            ran(*pip, "install", "--no-deps", "--no-build-isolation", Path(name).resolve(), folder=folder)
            ran(*pip, "check", folder=folder)  # what the file asks for is what was pinned
            ran(programs / "python", "-c", "import tacit; tacit.plan, tacit.certify", folder=folder)
            for words in (
                "--help",
                "--version",
                "proof advantage_upper",  # the proofs are part of the package
                "plan --records 9000 --queries 9 --epsilon 2 --delta 1e-9 --certificate plan.json",
                "verify plan.json",  # so is the checker
            ):
                ran(programs / "tacit", *words.split(), folder=folder)
            ran(*pip, "uninstall", "--yes", "tacit-privacy", folder=folder)
            sys.stdout.write(f"installed and run: {name}\n")


if __name__ == "__main__":
    main()
