"""The release check for others, on certificates: `tacit verify` in the action and in the hook."""

import pytest
from test_release_check import HOOKS, act, folder, hook, in_shell

__all__ = ["folder"]


@pytest.fixture(scope="module")
def certified(folder):
    words = "audit scores.csv --secret member --output predicted --attack-rows 0 --certificate student.certificate.json"
    made = in_shell(f"tacit {words}", folder)
    assert made.returncode == 0, made.stderr
    good = (folder / "student.certificate.json").read_text(encoding="utf-8")
    (folder / "wrong.certificate.json").write_text(good.replace('"value": "0x1.', '"value": "0x0.'), encoding="utf-8")
    (folder / "broken.certificate.json").write_text(good[:-20], encoding="utf-8")
    return folder


CASES = [("student.certificate.json", 0), ("wrong.certificate.json", 1), ("broken.certificate.json", 2)]


@pytest.mark.parametrize(("name", "code"), CASES)
def test_the_action_verifies_a_certificate(certified, name, code):
    ((step, found),) = act(certified, certificate=name)
    assert (step, found.returncode) == ("verify", code), found.stderr


def test_the_action_audits_first_and_verifies_what_passed(certified):
    given = {"table": "scores.csv", "options": "--attack-rows\n0", "certificate": "student.certificate.json"}
    steps = act(certified, output="predicted", **given)
    assert [(name, found.returncode) for name, found in steps] == [("audit", 0), ("verify", 0)]
    ((name, found),) = act(certified, output="known", **given)
    assert (name, found.returncode) == ("audit", 1)


def test_the_action_hands_on_more_words(certified):
    ((_, found),) = act(certified, certificate="student.certificate.json", verify_options="--subject\nscores.csv\n")
    assert found.returncode == 1, found.stderr  # the certificate is about no such file
    assert "another SHA-256" in " ".join(found.stdout.split())


@pytest.mark.parametrize(("name", "code"), CASES)
def test_the_hook_verifies_a_certificate(certified, name, code):
    assert hook("tacit-verify", certified, name).returncode == code
    assert HOOKS["tacit-verify"]["entry"] == "tacit verify --all"
