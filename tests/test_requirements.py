"""What each purpose installs: pinned with hashes, nothing of another purpose, by versions that can be had."""

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
PURPOSES = ("demo", "service", "test", "check", "dist", "docs", "supply")


def lock(purpose):
    return (PROJECT / "requirements" / f"{purpose}.txt").read_text()


def pins(purpose):
    """Each pinned package with its version and platform: numpy==2.4.6 ; python_full_version < '3.12'."""
    return re.findall(r"^([a-z0-9][^ ]*==[^\\\n]*?) *\\$", lock(purpose), re.MULTILINE)


def before(purpose):
    return re.search(r"uploaded before (\S+)\.$", lock(purpose), re.MULTILINE).group(1)


def index_says(requirements):
    """uv's answer about pinned versions, by what the index holds today."""
    command = ["uv", "pip", "compile", "--no-python-downloads", "--universal", "--python-version", "3.11", "--no-deps"]
    found = subprocess.run(
        [sys.executable, "-m", *command, "--exclude-newer", before("test"), str(requirements)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    if "Failed to fetch" in found.stderr:
        pytest.skip("no package index can be reached")
    return found


@pytest.mark.parametrize("purpose", PURPOSES)
def test_every_pin_has_its_hashes(purpose):
    lines = [line for line in lock(purpose).splitlines() if line and not line.startswith(("#", " "))]
    assert len(lines) == len(pins(purpose)) > 10
    assert lock(purpose).count("--hash=sha256:") >= len(lines)


def test_purposes_agree_and_install_nothing_of_one_another():
    assert len({before(purpose) for purpose in PURPOSES}) == 1
    versions = {}
    for purpose in PURPOSES:
        for pin in pins(purpose):
            name, _, version = pin.partition("==")
            marker = version.partition(";")[2].strip()
            assert versions.setdefault((name, marker), version) == version
    names = {purpose: {pin.partition("==")[0] for pin in pins(purpose)} for purpose in PURPOSES}
    assert not names["test"] & {"zensical", "mkdocs", "mkdocstrings", "pymdown-extensions", "mypy", "ruff"}
    assert not names["docs"] & {"numpy", "pytest", "ray"}
    assert not names["demo"] & {"pytest", "ray", "zensical"}
    assert not set.union(*names.values()) & {"torch", "torchvision", "triton"}


def test_pinned_versions_were_four_weeks_old_and_can_be_had(tmp_path):
    every = tmp_path / "every.in"
    every.write_text("\n".join(sorted({pin for purpose in PURPOSES for pin in pins(purpose)})))
    found = index_says(every)
    assert found.returncode == 0, found.stderr
    assert "yanked" not in found.stderr, found.stderr
    assert datetime.fromisoformat(before("test")) <= datetime.now(UTC) - timedelta(weeks=4)


@pytest.mark.parametrize("gone", ["attrs==21.1.0", "attrs==21.1.9"], ids=["withdrawn", "missing"])
def test_a_version_that_cannot_be_had_is_named(tmp_path, gone):
    asked = tmp_path / "gone.in"
    asked.write_text(gone)
    found = index_says(asked)
    assert gone in found.stderr
    assert found.returncode or "yanked" in found.stderr
