"""The release check for others: the steps of action.yml and the pre-commit hooks, run in a shell."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table in which `predicted` tells nothing about membership and `known` everything."""
    place = tmp_path_factory.mktemp("checked")
    rng = np.random.default_rng(0)
    member, predicted = np.arange(6000) % 2, rng.integers(0, 3, 6000)
    rows = np.column_stack([member, predicted, member])
    np.savetxt(place / "scores.csv", rows, fmt="%d", delimiter=",", header="member,predicted,known", comments="")
    return place


def in_shell(script, folder, **variables):
    """As a runner runs a step with `shell: bash`; `tacit` is the one that is tested."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "tacit").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tacit "$@"\n')
    (tools / "tacit").chmod(0o755)
    path = os.pathsep.join([str(tools), os.environ["PATH"]])
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=folder, env=os.environ | variables | {"PATH": path}, capture_output=True, text=True
    )


def filled(text, given):
    """GitHub's expressions `${{ inputs.name }}`, and comparisons of them with the empty text."""
    values = {name: str(given.get(name, found["default"])) for name, found in ACTION["inputs"].items()}

    def value(found):
        terms = [term.strip() for term in found[1].split("&&")]
        if len(terms) == 1 and "=" not in terms[0]:
            return values[terms[0].removeprefix("inputs.")]
        truths = []
        for term in terms:
            name, sign, other = re.fullmatch(r"inputs\.([a-z-]+) (==|!=) '(.*)'", term).groups()
            truths.append((values[name] == other) == (sign == "=="))
        return "true" if all(truths) else ""

    return re.sub(r"\$\{\{ (.*?) \}\}", value, text)


def act(folder, **given):
    """The action's steps that its inputs ask for, in their order, up to the first that fails; but not the install."""
    given = {name.replace("_", "-"): text for name, text in given.items()}
    assert set(given) <= set(ACTION["inputs"])
    finished = []
    for step in ACTION["runs"]["steps"]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"]  # an input must not become part of a script
        if step["name"] == "install" or not filled(step.get("if", "yes"), given):
            continue
        variables = {name: filled(text, given) for name, text in step.get("env", {}).items()}
        finished.append((step["name"], in_shell(step["run"], folder, **variables)))
        if finished[-1][1].returncode:
            break
    return finished


def test_the_action_passes_what_is_proven(folder):
    ((name, found),) = act(folder, table="scores.csv", output="predicted", options="--attack-rows\n0\n")
    assert (name, found.returncode) == ("audit", 0), found.stderr
    assert "Met: " in found.stdout
    assert (folder / "audit.html").read_text(encoding="utf-8").startswith("<!doctype html")
    assert '"command": "audit"' in (folder / "audit.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ({"output": "known"}, 1, "Broken: "),
        ({"output": "predicted\nknown", "options": "--attack-rows\n0"}, 1, "Not proven: "),
        ({"output": "predicted", "ceiling": "0.001", "options": "--attack-rows\n0"}, 1, "Not proven: "),
        ({"output": "absent"}, 2, "absent"),
        ({"output": "predicted", "table": "-absent.csv"}, 2, "-absent.csv"),
        ({"output": "$(touch pwned)"}, 2, "$(touch pwned)"),
        ({"output": "predicted", "ceiling": "0.1; touch pwned"}, 2, "0.1; touch pwned"),
    ],
)
def test_the_action_fails_where_it_must(folder, given, code, said):
    ((name, found),) = act(folder, **{"table": "scores.csv"} | given)
    assert (name, found.returncode) == ("audit", code), found.stderr
    assert said in found.stdout + found.stderr
    assert not (folder / "pwned").exists()


def test_the_action_without_a_table_and_a_certificate_fails(folder):
    ((name, found),) = act(folder)
    assert (name, found.returncode) == ("inputs", 2)
    assert "give the release check a table or a certificate" in found.stdout


def test_the_action_installs_its_own_version_with_an_extra_that_exists():
    script = ACTION["runs"]["steps"][0]["run"]
    (extra,) = re.findall(r'"\$GITHUB_ACTION_PATH\[(\w+)\]"', script)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"][extra] == HOOKS["tacit-audit"]["additional_dependencies"]


def hook(name, folder, *words):
    """As pre-commit starts a hook that gets no file names."""
    assert HOOKS[name]["language"] == "python"
    assert HOOKS[name]["pass_filenames"] is False
    return in_shell(shlex.join([*shlex.split(HOOKS[name]["entry"]), *words]), folder)


def test_the_hook_passes_and_fails(folder):
    words = ["scores.csv", "--secret", "member", "--require-advantage", "0.1", "--output"]
    assert hook("tacit-audit", folder, *words, "predicted", "--attack-rows", "0").returncode == 0
    assert hook("tacit-audit", folder, *words, "known", "--attack-rows", "0").returncode == 1
    assert re.search(HOOKS["tacit-audit"]["files"], "data/scores.csv")
    assert not re.search(HOOKS["tacit-audit"]["files"], "train.py")
