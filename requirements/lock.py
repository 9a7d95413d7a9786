"""`make lock`: pins what each purpose installs, with hashes, by versions that have been out for four weeks.

A version that is withdrawn is withdrawn within days as a rule; nobody who installs later shall meet it. All purposes
are resolved together first, so that they can share one environment.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
AGE = timedelta(weeks=4)
# Without the encoders of texts and images: types of theirs are not looked at.
TYPED = [word for extra in ("service", "torch", "vision", "dask", "ray") for word in ("--extra", extra)]
PURPOSES = {
    "demo": ["pyproject.toml", "--extra", "demo", "--group", "build"],
    "service": ["pyproject.toml", "--extra", "service"],  # deploy/Containerfile
    "test": ["pyproject.toml", "--extra", "all", "--group", "build", "--group", "test"],
    "check": ["pyproject.toml", *TYPED, "--group", "build", "--group", "check"],
    "dist": ["pyproject.toml", "--group", "build", "--group", "dist"],
    "docs": ["--group", "docs"],
    "supply": ["--group", "supply"],
}
HEADER = """\
# Written by `make lock`: what {purpose} needs besides torch. Versions uploaded before {before}.
"""


def compiled(arguments: list[str], before: str) -> str:
    """What uv resolves, for every platform and Python from 3.11 on."""
    command = ["uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--universal"]
    command += ["--no-python-downloads", "--python-version", "3.11"]
    found = subprocess.run(  # noqa: S603 — the words above
        [sys.executable, "-m", *command, "--exclude-newer", before, "--generate-hashes", *arguments],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )
    if found.returncode:
        sys.exit("the pins are as they were: uv found no solution")
    return found.stdout


def main() -> None:
    before = (datetime.now(UTC) - AGE).strftime("%Y-%m-%dT00:00:00Z")
    groups = [word for name in ("build", "test", "check", "dist", "docs", "supply") for word in ("--group", name)]
    with tempfile.TemporaryDirectory() as folder:
        together = Path(folder, "together.txt")
        together.write_text(
            compiled(["pyproject.toml", "--constraint", "constraints.txt", "--all-extras", *groups], before)
        )
        apart = ["--constraint", str(together), "--no-emit-package", "torch", "--no-emit-package", "torchvision"]
        pins = {purpose: compiled([*chosen, *apart], before) for purpose, chosen in PURPOSES.items()}
    for purpose, text in pins.items():
        PROJECT.joinpath("requirements", f"{purpose}.txt").write_text(
            HEADER.format(purpose=purpose, before=before) + text
        )


if __name__ == "__main__":
    main()
