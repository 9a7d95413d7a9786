"""The page that checks audits in a browser agrees with the Python checker on the same files."""

import base64
import copy
import functools
import json
from fractions import Fraction
from pathlib import Path

import certified_cases as cases
import fuzz_checker
import pytest
import tacit_check
from browsing import browser, opened  # noqa: F401 — a fixture

PAGE = Path(tacit_check.__file__).with_name("index.html")
AUDITS = [name for name in cases.MADE if name.startswith("audit")]


def in_python(data):
    try:
        return [verdict for verdict, _, _ in tacit_check.check(data)]
    except tacit_check.BadFileError:
        return "refused"


def variants():
    """Audits as they are, with claims and inputs a little off, and broken ones."""
    for name in AUDITS:
        statement = cases.statement(name)
        yield json.dumps(statement)
        for path in (("claimed", "value"), ("inputs", "squared"), ("inputs", "variation"), ("failure_probability",)):
            for factor in (Fraction(99, 100), Fraction(101, 100)):
                other = copy.deepcopy(statement)
                here = other["predicate"]["claims"][0]
                for step in path[:-1]:
                    here = here[step]
                here[path[-1]] = str(cases.exact(here[path[-1]]) * factor)
                yield json.dumps(other)
        for place, change in ((0, 40), (0, -40), (1, 40), (1, -40)):
            other = copy.deepcopy(statement)
            other["predicate"]["claims"][0]["inputs"]["cells"][0][place] += change
            yield json.dumps(other)
    whole = [json.dumps(cases.statement(name)) for name in AUDITS[:2]]
    yield json.dumps(cases.statement("ledger"))
    payload = base64.b64encode(whole[0].encode()).decode()
    yield json.dumps({"payloadType": "application/vnd.in-toto+json", "payload": payload, "signatures": []})
    for number in range(250):
        data = fuzz_checker.broken(number, 2, whole)
        try:
            yield data.decode()
        except UnicodeDecodeError:
            continue


def test_it_says_what_the_python_checker_says(browser, monkeypatch):  # noqa: F811
    monkeypatch.setattr(tacit_check, "exp", functools.lru_cache(2**16)(tacit_check.exp))  # most are taken many times
    files = list(variants())
    with opened(browser, PAGE) as page:
        found = page.evaluate("files => files.map(answer)", files)
    said = [
        one["refused"] and "refused" if "refused" in one else [each[0] for each in one["verdicts"]] for one in found
    ]
    expected = []
    for file in files:
        verdicts = in_python(file.encode())
        rule = (
            json.loads(file)["predicate"]["claims"][0]["rule"] if '"ledger"' in file and verdicts != "refused" else ""
        )
        expected.append(["not checkable here"] if rule == "ledger" else verdicts)
    assert [(one, other) for one, other in zip(said, expected, strict=True) if one != other] == []
    assert {"refused"} < {str(one) for one in expected}
    for verdict in ("follows", "does not follow", "not checkable here"):
        assert [verdict] in expected


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_file_is_chosen_and_judged(browser, tmp_path, scheme):  # noqa: F811
    (tmp_path / "certificate.json").write_text(json.dumps(cases.statement("audit")))
    with opened(browser, PAGE, scheme=scheme) as page:
        page.set_input_files("#file", tmp_path / "certificate.json")
        page.wait_for_function("document.getElementById('summary').textContent")
        assert page.text_content("#verdicts li").startswith("follows: advantage")
        assert page.text_content("#summary").startswith("1 of 1 claims follow.")
