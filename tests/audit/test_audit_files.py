"""`tacit audit` as people run it: real files in, verdicts and exit codes out, bad tables refused in one line."""

import dataclasses
import inspect
import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from commands import assert_one_line_error
from pages import Page, unfolded_words
from pyarrow import csv, parquet

from tacit import TacitError
from tacit.audit import attempts, audit_file, certify, certify_slices
from tacit.audit.sample import Sample
from tacit.audit.study.inputs import read
from tacit.audit.study.options import Task
from tacit.report.timing import Timed
from tacit.runtime import tables

pytestmark = pytest.mark.usefixtures("quick_attacks")

ROWS = 8_000
RNG = np.random.default_rng(0)
MEMBER = np.arange(ROWS) % 2
TABLE = {
    "member": np.array(["no", "yes"])[MEMBER],
    "score": RNG.normal(size=ROWS) + 0.1 * MEMBER,
    "class": RNG.integers(0, 10, ROWS),
    "word": np.array(["a", "b", "c"])[RNG.integers(0, 3, ROWS)],
    "group": np.array(["x", "y"])[RNG.integers(0, 2, ROWS)],
}


def audited(table, **options):
    """Without pictures, which take longer than everything else."""
    return audit_file(table, **{"secret": "s", "output": "o", "pictures": False} | options)


def kept(table, *outputs, **options):
    """What an audit of a file keeps of it."""
    usual = {name: one.default for name, one in inspect.signature(audit_file).parameters.items()}
    fields = {field.name: usual.get(field.name) for field in dataclasses.fields(Task)}
    task = Task(**fields | {"table": table, "secret": "s", "outputs": outputs} | options)
    return read(task, Timed(lambda _: None))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    table = pa.table(TABLE)
    csv.write_csv(table, folder / "t.csv")
    parquet.write_table(table, folder / "t.parquet", row_group_size=1_000)
    return folder


@pytest.fixture(scope="module")
def written(folder, warm):
    finished = warm.run(
        folder,
        *("audit", "t.csv", "--secret", "member", "--output", "score", "--noise", "0.5", "--slice", "group"),
        *("--require-advantage", "0.3", "--attack-rows", "6000", "--json", "a.json", "--report", "a.html"),
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout, json.loads((folder / "a.json").read_text()), (folder / "a.html").read_text()


def test_pictures_state_the_condition_that_the_certificate_rests_on(folder):
    columns = {"secret": "member", "output": "score", "attack_rows": 0}
    found = audit_file(folder / "t.csv", assume_one_direction=True, **columns)
    captions = [figure.caption for figure in (*found.opening, *found.figures) if "shaded region" in figure.caption]
    assert captions
    assert all(", if " in caption for caption in captions)


def test_the_verdict_comes_first(written):
    text, data, _ = written
    cards, rest = text.split("\n\n", 2)[1:]
    assert cards.startswith("WEAK    Telling member by column 'score'")  # the table looks as if it held noise
    paragraph = " ".join(rest.split())
    assert paragraph.startswith(
        "If the table holds the output without noise, although its numbers look as if they held it, met: the largest "
        "advantage of anyone who sees only column 'score' with Gaussian noise"
    )
    assert "is 'yes' in 4000 rows (called positive) and 'no' in 4000" in paragraph
    assert "standard deviation 0.5 on top of what the table holds lies between" in paragraph.split("; ")[0]
    assert (
        "column 'score' (numbers), is read as numbers without noise, to which fresh Gaussian noise of standard "
        "deviation 0.5 is added at release" in paragraph
    )
    caution = paragraph.split("the ceiling is 0.3.")[1]
    assert "look as if they held noise of 0.5 already" in caution[:140]
    assert "give --noise-added instead of --noise" in caution[:250]
    assert "It is not differential privacy." in paragraph
    assert max(len(line) for line in text.splitlines()) <= 84
    assert data["detail"]["met"] is True


def test_the_numbers_are_the_library_s(written):
    """The CSV is read to the last digit, and each number of the JSON follows from the table alone."""
    _, data, _ = written
    name = "column 'score'"
    expected = certify(TABLE["member"], TABLE["score"], noise=0.5, failure_probability=0.025, loss="joint", name=name)
    detail = data["detail"]
    assert detail["readings"]["advantage"] == expected.advantage
    assert detail["readings"]["auc"] == expected.auc
    assert detail["readings"]["tpr_at"]["0.01"] == float(expected.tpr_at(0.01))
    assert detail["readings"]["delta_at"]["1"] == float(expected.hockey_stick(1.0))
    slices = certify_slices(
        TABLE["member"], TABLE["score"], TABLE["group"], noise=0.5, failure_probability=0.025, loss="joint", name=name
    )
    assert {part["value"]: part["advantage"] for part in detail["slices"]} == {
        value: one.advantage for value, one in slices.items()
    }
    assert data["comparisons"][0]["guarantee"]["value"] == expected.advantage
    assert [part["failure_probability"] for part in detail["slices"]] == [0.0125, 0.0125]
    assert detail["failure_probability_with_slices"] == pytest.approx(0.05 + 0.005)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_column_that_holds_its_noise_is_certified_as_the_library_does(folder, name):
    columns = {"secret": "member", "output": "score"}
    expected = certify(TABLE["member"], TABLE["score"], noise_added=1.0, failure_probability=0.025, loss="joint")
    parts = certify_slices(
        TABLE["member"], TABLE["score"], TABLE["group"], noise_added=1.0, failure_probability=0.025, loss="joint"
    )
    report = audited(folder / name, **columns, noise_added=1.0, slices="group", attack_rows=0)
    assert report.detail["readings"]["advantage"] == expected.advantage
    assert {part["value"]: part["advantage"] for part in report.detail["slices"]} == {
        value: one.advantage for value, one in parts.items()
    }
    assert report.detail["noise_added"] == 1.0
    assert not report.detail["caution"]
    assert "with Gaussian noise of standard deviation 1 in it already" in " ".join(report.summary)
    assert len(audited(folder / name, **columns, noise_added=1.0, attack_rows=0, pictures=True).figures) == 1
    with pytest.raises(TacitError, match="must hold the Gaussian noise of standard deviation 3"):
        audited(folder / name, **columns, noise_added=3.0, attack_rows=0)


def test_attacks_stay_below_the_certificate(written):
    _, data, _ = written
    detail = data["detail"]
    assert {attack["method"] for attack in detail["attacks"]} == {"threshold", "histogram", "boosting", "network"}
    assert detail["attack_rows"] == 6000
    for attack in detail["attacks"]:
        assert attack["advantage"][1] <= detail["readings"]["advantage"]
        assert [rates["aimed"] for rates in attack["at_rates"]] == [0.001, 0.01, 0.1]
    assert not any(comparison["contradicted"] for comparison in data["comparisons"])
    assert detail["low"] == max(0, *(attack["advantage"][1] for attack in detail["attacks"]))


def test_the_page_shows_the_three_pictures(written):
    _, _, html = written
    page = Page(html)
    for title in ("Where every attack's ROC curve has to stay", "Calibration", "against the number of rows"):
        assert title in page.text
    assert html.count("data:image/svg+xml;base64,") == 3
    assert page.text.index("met: the largest advantage") < page.text.index("What nobody exceeds")
    assert unfolded_words(html) <= 900
    assert html.count("at most 0.") < 6  # one guarantee is said once, on its card and where its theorem is named


@pytest.mark.parametrize("output", [["class"], ["word"], ["class", "word"]])
def test_csv_and_parquet_say_the_same_as_the_library(folder, output):
    seen = {name: TABLE[name] for name in output}
    expected = certify(
        TABLE["member"], seen if len(seen) > 1 else TABLE[output[0]], failure_probability=0.1, loss="joint"
    )
    columns = {"secret": "member", "output": tuple(output)}
    for name in ("t.csv", "t.parquet"):
        report = audited(folder / name, **columns, failure_probability=0.1, attack_rows=0)
        assert report.detail["readings"]["advantage"] == expected.advantage
        assert report.detail["rows"] == ROWS
        assert "is read as categories" in " ".join(report.summary)


def test_the_release_check_fails(folder, here):
    common = ("audit", "t.parquet", "--secret", "member", "--output", "class", "--attack-rows", "0", "--quiet")
    assert here(folder, *common, "--require-advantage", "0.3").returncode == 0
    assert here(folder, *common, "--require-advantage", "0.01", "--json", "check.json").returncode == 1
    detail = json.loads((folder / "check.json").read_text())["detail"]
    assert detail["met"] is False
    assert detail["verdict"].startswith("Not proven: the largest advantage")
    assert detail["rows_needed"]["0.01"] > ROWS


def test_one_leaking_slice_fails_the_release_check(tmp_path):
    rng = np.random.default_rng(1)
    secret, part = rng.integers(0, 2, 20_000), np.where(np.arange(20_000) < 1_000, "small", "large")
    output = np.where((part == "small") & (rng.random(20_000) < 0.9), secret, rng.integers(0, 2, 20_000))
    parquet.write_table(pa.table({"s": secret, "o": output, "part": part}), tmp_path / "t.parquet")
    report = audited(tmp_path / "t.parquet", slices="part", require_advantage=0.2, attack_rows=0)
    assert not report.met
    assert report.summary[0].startswith("Not proven in 1 of 2 slices: in part = 'small'")
    assert report.summary[1].startswith("On the whole table: met: ")
    stricter = audited(tmp_path / "t.parquet", slices="part", require_advantage=0.01, attack_rows=0)
    assert stricter.verdicts[0].reason == "The ceiling of 0.01 is not proven, and no attack was run."
    assert stricter.summary[0].startswith("Not proven: the largest advantage")
    assert stricter.summary[1].startswith("Not proven in 2 of 2 slices: ")


def test_cards_and_advice_are_no_greener_than_slices_and_conditions_allow(tmp_path):
    rng = np.random.default_rng(1)
    secret, part = rng.integers(0, 2, 20_000), np.where(np.arange(20_000) < 1_000, "small", "large")
    output = np.where(part == "small", secret, rng.integers(0, 2, 20_000))
    parquet.write_table(pa.table({"s": secret, "o": output, "part": part}), tmp_path / "t.parquet")
    report = audited(tmp_path / "t.parquet", slices="part", attack_rows=0)
    assert [card.level for card in report.verdicts] == ["fine", "weak"]
    assert not any("Nothing needs to change" in change.what for change in report.changes)
    score = rng.normal(size=20_000)
    parquet.write_table(pa.table({"s": secret, "o": score}), tmp_path / "c.parquet")
    report = audited(tmp_path / "c.parquet", require_advantage=0.1, assume_one_direction=True, attack_rows=0)
    assert report.met
    (card,) = report.verdicts
    assert card.level == "weak"
    assert "which no table can confirm" in card.reason
    assert not any("Nothing needs to change" in change.what for change in report.changes)


def test_a_broken_ceiling_is_called_broken(tmp_path):
    secret = np.arange(4_000) % 2
    output = np.where(np.random.default_rng(2).random(4_000) < 0.8, secret, 1 - secret)
    parquet.write_table(pa.table({"s": secret, "o": output}), tmp_path / "t.parquet")
    report = audited(tmp_path / "t.parquet", require_advantage=0.3, attack_rows=2_000)
    assert not report.met
    assert report.summary[0].startswith("Broken: the largest advantage")
    assert report.detail["attack_rows"] == 2_000
    assert "The attacks use 2000 of 4000 rows, drawn at random." in " ".join(report.summary)


def lipschitz_table(folder):
    """A score on [0, 1] with which the mean of the secret, ±1, grows by 0.4 in all."""
    rng = np.random.default_rng(3)
    score = rng.random(20_000)
    secret = np.where(rng.random(20_000) < 0.5 + 0.2 * (score - 0.5), "yes", "no")
    table = pa.table({"s": secret, "o": score, "p": 1 - score})
    csv.write_csv(table, folder / "t.csv")
    parquet.write_table(table, folder / "t.parquet")
    return secret, score


def test_a_lipschitz_posterior_is_certified_as_the_library_does(tmp_path):
    secret, score = lipschitz_table(tmp_path)
    expected = certify(secret, score, failure_probability=0.05, assume_max_slope=0.5)
    assert 0.1 < expected.advantage < 0.4
    for name, attacked in (("t.csv", 3_000), ("t.parquet", 0)):
        report = audited(tmp_path / name, assume_max_slope=0.5, require_advantage=0.9, attack_rows=attacked)
        assert report.detail["readings"]["advantage"] == expected.advantage
        assert report.detail["lipschitz"] == 0.5
        assert len(report.detail["attacks"]) == (4 if attacked else 0)
        assert report.detail["low"] <= expected.advantage
        assert report.summary[0].startswith("If the secret's mean given the output, coded ±1 and with both values ")
        assert "met: " in report.summary[0]
    both = certify(secret, {"o": score, "p": 1 - score}, failure_probability=0.05, assume_max_slope=0.5)
    report = audited(tmp_path / "t.parquet", output=("o", "p"), assume_max_slope=0.5, attack_rows=0)
    assert report.detail["readings"]["advantage"] == both.advantage


def test_the_command_prints_what_was_assumed_and_what_is_positive(tmp_path, here):
    lipschitz_table(tmp_path)
    finished = here(
        tmp_path,
        *("audit", "t.csv", "--secret", "s", "--output", "o", "--assume-max-slope", "0.5", "--positive", "no"),
        *("--attack-rows", "2000", "--report", "l.html"),
    )
    assert finished.returncode == 0, finished.stderr
    said = " ".join(finished.stdout.split())
    assert "is 'no' in" in said
    assert said.index("Only you can check that") < said.rindex("changes by at most 0.5 per unit of the output")
    assert (
        "as numbers with which the secret's mean, coded ±1 and with both values equally likely, changes by at most"
        in said
    )
    assert (tmp_path / "l.html").read_text().count("data:image/svg+xml;base64,") == 3


@pytest.mark.parametrize(
    ("secrets", "given", "meant"),
    [
        (["no", "yes"], "no", "no"),
        ([0, 1], "0", 0),
        ([0, 1], "0.0", 0),
        ([2**53, 2**53 + 1], str(2**53), 2**53),
        ([0.5, 1.5], "0.50", 0.5),
        ([False, True], "false", False),
    ],
)
def test_the_positive_secret_is_found_by_its_text(secrets, given, meant, tmp_path):
    """A rule that finds the other class has other rates: three in ten of the first class are told by the output."""
    rng = np.random.default_rng(4)
    first = rng.random(4_000) < 0.5
    output = first & (rng.random(4_000) < 0.3)
    secret = np.where(first, secrets[0], secrets[1])
    parquet.write_table(pa.table({"s": secret, "o": output.astype(int)}), tmp_path / "t.parquet")
    usual, turned = (audited(tmp_path / "t.parquet", positive=value, attack_rows=4_000) for value in (None, given))
    assert usual.detail["secret"]["positive"] == turned.detail["secret"]["negative"] == secrets[1]
    assert turned.detail["secret"]["positive"] == meant
    assert turned.detail["readings"] == usual.detail["readings"]
    (found,) = [one for one in turned.detail["attacks"] if one["method"] == "histogram"]
    assert found["false_positive_rate"] == 0
    assert 0.2 < found["true_positive_rate"] < 0.4
    (other,) = [one for one in usual.detail["attacks"] if one["method"] == "histogram"]
    assert other["true_positive_rate"] == 1


def test_a_continuous_output_is_attacked_and_the_options_that_help_are_named(tmp_path, here):
    rng = np.random.default_rng(5)
    secret = np.arange(2_000) % 2
    table = pa.table({"s": secret, "o": rng.normal(size=2_000) + secret, "g": secret * 0})
    parquet.write_table(table, tmp_path / "t.parquet")
    common = ("audit", "t.parquet", "--secret", "s", "--output", "o", "--slice", "g")
    finished = here(tmp_path, *common, "--report", "c.html", "--json", "c.json")
    said = " ".join(finished.stdout.split())
    assert finished.returncode == 0, finished.stderr
    assert "Nothing can be certified: 2000 different values in 2000 rows" in said
    assert "give --noise, round it before release, or state --assume-one-direction or --assume-max-slope" in said
    assert "noise=" not in said
    assert (tmp_path / "c.html").read_text().count("data:image/svg+xml;base64,") == 2
    detail = json.loads((tmp_path / "c.json").read_text())["detail"]
    assert detail["high"] == 1
    assert 0.15 < detail["low"] < 0.383
    # What the attacks show needs independent rows, and the report says so.
    assert "rows are independent" in said
    for ceiling in ("0.5", "1"):  # nothing is proven, so no check passes, not even the one that always holds
        assert here(tmp_path, *common, "--require-advantage", ceiling, "--attack-rows", "0").returncode == 1


@pytest.mark.parametrize(("decimals", "loose"), [(4, True), (1, False)])
def test_a_rounded_score_with_many_values_is_said_to_be_categories(tmp_path, decimals, loose):
    rng = np.random.default_rng(0)
    rows = [f"{row % 2},{rng.random():.{decimals}f}" for row in range(20_000)]
    (tmp_path / "table.csv").write_text("\n".join(["s,o", *rows]))
    found = audited(tmp_path / "table.csv", attack_rows=0)
    [said] = [sentence for sentence in found.summary if "read as categories" in sentence]
    assert ("the limits are loose" in said) == loose
    assert ("--assume-one-direction" in said) == loose


def test_the_old_option_goes_on_working(folder, here):
    common = ("audit", "t.csv", "--secret", "member", "--output", "class", "--attack-rows", "0")
    old, new = (here(folder, *common, option, "0.01") for option in ("--delta", "--failure-probability"))
    assert old.returncode == new.returncode == 0
    assert old.stdout == new.stdout
    assert "tacit: --delta will be removed; use --failure-probability" in old.stderr
    assert "--delta" not in here(folder, "audit", "--help").stdout
    both = here(folder, *common, "--failure-probability", "0.05", "--delta", "0.3")
    assert_one_line_error(both)
    assert "must not stand beside --failure-probability" in both.stderr


@pytest.mark.parametrize(("columns", "said"), [(3, False), (4, True)])
def test_certificates_by_draws_are_part_of_the_time_that_is_said(tmp_path, columns, said):
    """Three noisy columns fit on a grid; four are certified by draws, which takes seconds."""
    rng, lines = np.random.default_rng(0), []
    names = [f"c{place}" for place in range(columns)]
    table = {"member": np.arange(2400) % 2, **{name: rng.standard_normal(2400) for name in names}}
    parquet.write_table(pa.table(table), tmp_path / "wide.parquet")
    options = {"secret": "member", "noise": 2.0, "attack_rows": 0, "pictures": False, "advance": lines.append}
    report = audit_file(tmp_path / "wide.parquet", output=names, **options)
    assert report.detail["method"] == "noisy"
    assert any(line.startswith("this takes about") for line in lines) == said


def test_pictures_are_drawn_for_a_page_alone(folder):
    columns = {"secret": "member", "output": "class", "attack_rows": 0}
    drawn = audit_file(folder / "t.parquet", **columns)
    assert (len(drawn.opening), len(drawn.figures)) == (1, 1)
    assert not audited(folder / "t.parquet", **columns).figures


GOOD = "s,o,g\n" + "".join(f"{row % 2},{row % 3},{row % 4}\n" for row in range(40))

BAD = {
    "no such column": (
        GOOD,
        "--output oo",
        "column 'oo' of TABLE must be one of the file's columns, got '3 other columns'; did you mean 'o'?",
    ),
    "no such secret": (GOOD, "--secret S", "column 'S' of TABLE must be one of the file's columns"),
    "a number": (
        "s,o\n" + "".join(f"{number},1\n" for number in range(21)),
        "",
        "secret must take 20 different numbers or fewer to be read as classes, got '21 different numbers or more'",
    ),
    "three values and noise": (
        "s,o\n1,1\n2,1\n3,1\n",
        "--noise 1",
        "--noise must come with a secret of two values, and column 's' has more, got 1.0",
    ),
    "a number beyond its range": ("s,o\n1,1\n2,1\n3,1\n", "--secret-range 0 2.5", "must lie within --secret-range"),
    "a number that is text": ("s,o\na,1\nb,1\n", "--secret-range 0 2.5", "must hold numbers where --secret-range"),
    "an empty range": ("s,o\n1,1\n2,1\n", "--secret-range 2 1", "--secret-range must be two numbers"),
    "the same number": ("s,o\n1,1\n1,1\n", "--secret-range 0 2", "secret must take different numbers"),
    "a group that is the secret": ("s,o\n1,1\n2,1\n", "--group s", "must name different columns"),
    "two secrets and a range": (
        "s,o,u\n1,1,2\n2,1,3\n",
        "--secret u --secret s --secret-range 0 3",
        "must be one column",
    ),
    "one class": ("s,o\n1,1\n1,2\n", "", "secret must take two values in the table, got 'one'"),
    "empty file": ("", "", "table must be a readable table with at least one record, got 'Empty CSV file in t.csv'"),
    "no rows": ("s,o\n", "", "no record in t.csv"),
    "a missing output": (
        "s,o\n1,\n0,2\n",
        "",
        "column 'o' of `table` must have no missing entry (empty, NA, NaN, null), got '1 missing among the",
    ),
    "a missing word": ("s,o\n1,a\n0,\n", "", "column 'o' of `table` must have no missing entry"),
    "nan": ("s,o\n1,nan\n0,2.5\n", "", "column 'o' of `table` must have no missing entry"),
    "a missing secret": ("s,o\n,1\n0,2\n", "", "column 's' of `table` must have no missing entry"),
    "words among numbers": (
        "s,o\n" + "1,1\n0,2\n" * 1_200_000 + "0,high\n",
        "--noise 1",
        "column 'o' of TABLE must hold numbers where --noise",
    ),
    "one number in two texts": ("s,o\n1,1.0\n0,1\n", "--assume-one-direction", "must write every number in one way"),
    "ragged": ("s,o\n1,2\n0\n", "", "Expected 2 columns, got 1"),
    "text with noise": ("s,o\n1,a\n0,b\n", "--noise 0.1", "must hold numbers where --noise"),
    "infinite": ("s,o\n1,inf\n0,1.5\n", "--noise 0.1", "must be finite"),
    "the secret as output": (GOOD, "--output s", "must name different columns"),
    "noise of zero": (GOOD, "--noise 0", "--noise must be a finite number > 0"),
    "a failure probability of one": (
        GOOD,
        "--failure-probability 1",
        "--failure-probability must be a finite number",
    ),
    "a ceiling of zero": (GOOD, "--require-advantage 0", "--require-advantage must be"),
    "two columns of one name": ("s,o,o\n1,2,2\n0,1,1\n", "", "must be there once"),
    "no such positive": (
        GOOD,
        "--positive 2",
        "--positive must be a value of column 's', got '2'; write it as the file does",
    ),
    "a word as positive": (
        GOOD,
        "--positive yes",
        "--positive must be a value of column 's', got 'yes'; write it as the file does",
    ),
    "lipschitz of zero": (GOOD, "--assume-max-slope 0", "--assume-max-slope must be a finite number > 0"),
    "noise in it and on top": (GOOD, "--noise-added 1 --noise 1", "--noise-added must come without --noise"),
    "text with noise in it": ("s,o\n1,a\n0,b\n", "--noise-added 1", "must hold numbers where --noise"),
    "lipschitz with noise": (GOOD, "--assume-max-slope 1 --noise 1", "--assume-max-slope must come without --noise"),
    "text with lipschitz": (
        "s,o\n1,a\n0,b\n",
        "--assume-max-slope 1",
        "must hold numbers where --noise, ",
    ),
}


@pytest.mark.parametrize(("content", "options", "message"), BAD.values(), ids=list(BAD))
def test_a_bad_table_is_refused_in_one_line(content, options, message, tmp_path, here):
    (tmp_path / "t.csv").write_text(content)
    given = options.split()
    if options:  # by the command itself; the rest by its function, which is faster
        for option, value in (("--secret", "s"), ("--output", "o")):
            given += [] if option in given else [option, value]
        finished = here(tmp_path, "audit", "t.csv", *given)
        assert_one_line_error(finished)
        said = finished.stderr
    else:
        with pytest.raises(TacitError) as refusal:
            audited(tmp_path / "t.csv")
        said = str(refusal.value)
        assert "\n" not in said
    assert message in said


@pytest.mark.parametrize("name", ["t.txt", "missing.csv", "missing.parquet", "broken.parquet"])
def test_files_that_are_no_tables_are_refused(name, tmp_path, here):
    (tmp_path / "t.txt").write_text(GOOD)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    assert_one_line_error(here(tmp_path, "audit", name, "--secret", "s", "--output", "o"))


def damaged(content, rng, tries):
    """Copies of a file cut off somewhere, or with a few bits turned."""
    for number in range(tries):
        copy = bytearray(content)
        if number % 4 == 0:
            yield bytes(copy[: rng.integers(len(copy))])
            continue
        for _ in range(rng.integers(1, 4)):
            copy[rng.integers(len(copy))] ^= 1 << rng.integers(8)
        yield bytes(copy)


def counts(path):
    return {cell: pair.tolist() for cell, pair in kept(path, "o", "w", attack_rows=0).whole._cells.items()}


def counts_or_refusal(path):
    """Nothing but a refusal in one line may be raised."""
    try:
        return counts(path)
    except TacitError as refusal:
        said = str(refusal)
    assert "\n" not in said
    return said


@pytest.mark.parametrize("options", [{}, {"compression": "none", "use_dictionary": False}])
def test_a_damaged_parquet_file_is_refused_or_counts_as_before(options, tmp_path):
    """Where pages have checksums. What is damaged beside them, in what no count depends on, may pass."""
    rng = np.random.default_rng(0)
    columns = {"s": rng.integers(0, 2, 300), "o": rng.integers(0, 5, 300), "w": rng.choice(["a", "bb", "c"], 300)}
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table(columns), path, row_group_size=100, write_page_checksum=True, **options)
    expected, refused = counts(path), 0
    for copy in damaged(path.read_bytes(), rng, 150):
        path.write_bytes(copy)
        found = counts_or_refusal(path)
        refused += isinstance(found, str)
        assert found == expected or isinstance(found, str)
    assert refused > 50


def test_a_damaged_csv_file_is_read_or_refused_in_one_line(tmp_path):
    rng = np.random.default_rng(1)
    path = tmp_path / "t.csv"
    content = "s,o,w\n" + "".join(f'{row % 2},{row % 5},"w ""{row % 3}"""\n' for row in range(60))
    for copy in damaged(content.encode(), rng, 150):
        path.write_bytes(copy)
        assert counts_or_refusal(path)


def test_a_parquet_file_with_a_page_that_is_damaged_is_one_line(tmp_path, here):
    """Exit code 2: 1 would say that a ceiling is not proven."""
    path = tmp_path / "t.parquet"
    table = pa.table({"s": np.arange(500) % 2, "o": RNG.integers(0, 2**62, 500)})
    parquet.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    finished = here(tmp_path, "audit", "t.parquet", "--secret", "s", "--output", "o", "--require-advantage", "0.5")
    assert_one_line_error(finished)
    assert "CRC checksum" in finished.stderr


def test_few_rows_have_a_certificate_without_attacks(tmp_path):
    (tmp_path / "t.csv").write_text(GOOD)
    report = audited(tmp_path / "t.csv")
    assert "No attacks were run: they need 30 rows of each class." in report.summary
    assert report.detail["high"] <= 1


def test_a_constant_output_tells_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("s,o\n" + "yes,same\nno,same\n" * 2_000)
    report = audited(tmp_path / "t.csv", attack_rows=200)
    assert report.detail["high"] < 0.05
    assert report.detail["low"] == 0


PAIRS = [
    ("2020-01-01 01:00:00+01:00", "2020-01-01 00:00:00Z"),
    ("true", "TRUE"),
    ("1", "true"),
    ("12:30", "12:30:00"),
    ('"a"', "a"),
    ("01234", "1234"),
    ("0x10", "16"),
    ("1e-400", "0"),
    ("inf", "Infinity"),
    ("1", "1.0"),
    (" a", "a"),
    ("9007199254740993", "9007199254740992"),
    ('"a\r\nb"', '"a\nb"'),
    ("é", "e\u0301"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_texts_that_differ_in_the_file_are_different_outputs(one, other, tmp_path):
    """The output tells the secret in full, to all who see what the file holds."""
    (tmp_path / "t.csv").write_bytes(("s,o\n" + f"yes,{one}\nno,{other}\n" * 500).encode())
    assert audited(tmp_path / "t.csv", attack_rows=0).detail["high"] > 0.99


def test_attacks_see_the_text_and_the_numbers_that_it_spells():
    secret = np.array(["no", "yes"] * 300)
    same = certify(secret, np.array(["1", "1.0"] * 300), failure_probability=0.1)
    (found,) = attempts(secret, np.array(["1", "1.0"] * 300), certificate=same, learners=["histogram"])
    assert found.rates.advantage[1] > 0.9
    texts = np.array([f"{place / 100 + (place % 2) / 3:.3f}" for place in range(600)])
    wide = certify(secret, texts, failure_probability=0.1, method="discrete")
    (found,) = attempts(secret, texts, certificate=wide, learners=["threshold"])
    assert found.learner == "threshold"


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_secrets_and_slices_that_differ_in_the_file_stay_apart(one, other, tmp_path):
    (tmp_path / "t.csv").write_bytes(("o,s,g\n" + f"x,{one},{one}\nx,{other},{one}\nx,{one},{other}\n" * 100).encode())
    report = audited(tmp_path / "t.csv", slices="g", attack_rows=0)
    texts = {text[1:-1] if one[0] == other[0] == '"' else text for text in (one, other)}
    assert {report.detail["secret"][side] for side in ("positive", "negative")} == texts
    assert {part["value"] for part in report.detail["slices"]} == texts


def test_whole_columns_in_quotes_are_read_as_the_text_in_them(tmp_path):
    rows = "".join(f'"{"yes" if row % 2 else "no"}","{row % 7 / 2}"\n' for row in range(2_000))
    (tmp_path / "quoted.csv").write_text(f'"s","o"\n{rows}')
    (tmp_path / "plain.csv").write_text(f"s,o\n{rows}".replace('"', ""))
    for options in ({}, {"noise": 0.5}, {"positive": "no"}):
        found = [audited(tmp_path / name, attack_rows=0, **options).detail for name in ("quoted.csv", "plain.csv")]
        assert found[0] == found[1]


def test_no_refusal_shows_what_a_row_holds(tmp_path):
    """A wrong column, a missing first line, types that do not fit: messages land in logs."""
    rows = "".join(f"{row % 2},{row / 7:.5f},Jane Doe {row},{10**18 + row}\n" for row in range(50))
    (tmp_path / "t.csv").write_text(f"s,o,name,id\n{rows}")
    (tmp_path / "headless.csv").write_text(rows)
    table = {
        "s": [0, 1] * 25,
        "name": [f"Jane Doe {row}" for row in range(50)],
        "id": [2**63 + row for row in range(50)],
    }
    parquet.write_table(pa.table({**table, "id": pa.array(table["id"], pa.uint64())}), tmp_path / "t.parquet")
    tries = [
        ("t.csv", {"secret": "name"}),
        ("t.csv", {"secret": "id"}),
        ("t.csv", {"output": "name", "noise": 1.0}),
        ("t.csv", {"output": "id", "noise": 1.0}),
        ("t.csv", {"output": "id", "assume_max_slope": 1.0}),
        ("t.csv", {"secret": "name", "slices": "s", "output": "id"}),
        ("headless.csv", {}),
        ("t.parquet", {"secret": "name", "output": "s"}),
        ("t.parquet", {"output": "name", "noise": 1.0}),
        ("t.parquet", {"output": "id"}),
    ]
    for name, options in tries:
        with pytest.raises(TacitError) as refusal:
            audited(tmp_path / name, **options)
        assert not {"Jane", "Doe", "1000000", "92233"} & set(re.findall(r"[A-Za-z]+|\d{5,7}", str(refusal.value))), name


def test_equal_rows_come_once_with_their_number(folder):
    for name in ("t.csv", "t.parquet"):
        counted = {}
        for columns, counts, _ in tables.batches(folder / name, ["member", "word"], name="TABLE"):
            for member, word, count in zip(columns["member"], columns["word"], counts, strict=True):
                counted[member, word] = counted.get((member, word), 0) + int(count)
        pairs = np.unique(np.column_stack([TABLE["member"], TABLE["word"]]), axis=0, return_counts=True)
        assert counted == {tuple(pair): count for pair, count in zip(pairs[0].tolist(), pairs[1], strict=True)}


def counted(path, columns):
    """How often each row comes, by `tables.batches`, with floats by their bits."""
    found = {}
    for values, counts, _ in tables.batches(path, columns, name="TABLE"):
        seen = [
            (one.view(np.int64) if one.dtype.kind == "f" else one).tolist()
            for one in (values[column] for column in columns)
        ]
        numbers = np.ones(len(seen[0]), int) if counts is None else counts
        for row, number in zip(zip(*seen, strict=True), numbers.tolist(), strict=True):
            found[row] = found.get(row, 0) + number
    return found


def test_only_rows_that_are_the_same_to_the_last_bit_are_counted_together(tmp_path):
    zeros = np.array([0.0, -0.0, 0.1, np.nextafter(0.1, 1)])
    wholes = np.array([2**53, 2**53 + 1, -(2**63), 2**63 - 1])
    words = np.array(["a", "a ", "\0a", "A"], dtype=object)
    places = np.random.default_rng(0).integers(0, 4, (3, 50_000))
    columns = {"count_all": zeros[places[0]], "whole": wholes[places[1]], "word": words[places[2]]}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    bits = zeros.view(np.int64).tolist()
    naive = {}
    for a, b, c in places.T.tolist():
        row = bits[a], int(wholes[b]), words[c]
        naive[row] = naive.get(row, 0) + 1
    assert counted(tmp_path / "t.parquet", list(columns)) == naive
    assert len(naive) == 64
    ((_, counts, _),) = tables.batches(tmp_path / "t.parquet", list(columns), name="TABLE")
    assert len(counts) == 64


def test_rows_that_hardly_repeat_are_not_counted_together(tmp_path):
    scores = np.random.default_rng(0).normal(size=20_000)
    parquet.write_table(pa.table({"o": scores}), tmp_path / "t.parquet")
    ((columns, counts, _),) = tables.batches(tmp_path / "t.parquet", ["o"], name="TABLE")
    assert counts is None
    np.testing.assert_array_equal(columns["o"], scores)


def test_text_that_ends_in_nul_is_refused(tmp_path):
    """NumPy would drop the NUL, and one output become another."""
    parquet.write_table(pa.table({"s": [0, 1] * 50, "o": ["a", "a\0"] * 50}), tmp_path / "t.parquet")
    with pytest.raises(TacitError, match="column 'o' of `table` must not end in what NumPy drops"):
        audited(tmp_path / "t.parquet")


def test_a_run_is_repeated_to_the_bit(tmp_path):
    rng = np.random.default_rng(5)
    table = pa.table({"s": rng.integers(0, 2, 200_000), "o": rng.integers(0, 3_000, 200_000)})
    parquet.write_table(table, tmp_path / "t.parquet")
    drawn = [kept(tmp_path / "t.parquet", "o").sample.table() for _ in range(2)]
    np.testing.assert_array_equal(drawn[0][0], drawn[1][0])
    np.testing.assert_array_equal(drawn[0][1][0], drawn[1][1][0])


def test_parquet_types_are_kept_apart(tmp_path):
    from decimal import Decimal

    table = pa.table(
        {
            "flag": [True, False],
            "small": pa.array([1, 2], pa.uint8()),
            "half": pa.array([0.5, 0.25], pa.float32()),
            "cents": pa.array([Decimal("1.50"), Decimal("2.25")], pa.decimal128(8, 2)),
            "long": pa.array([Decimal("1." + "0" * 29 + "1"), Decimal("1." + "0" * 29 + "2")], pa.decimal128(38, 30)),
            "kind": pa.array(["b", "a"]).dictionary_encode(),
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    ((columns, counts, _),) = tables.batches(tmp_path / "t.parquet", table.column_names, name="TABLE")
    assert counts is None
    assert [columns[name].dtype.kind for name in table.column_names] == ["b", "u", "f", "f", "U", "U"]
    assert columns["cents"].tolist() == [1.5, 2.25]
    assert len(set(columns["long"].tolist())) == 2  # float64 would make one of them
    assert columns["kind"].tolist() == ["b", "a"]


def test_the_sample_gives_every_row_the_same_chance():
    """Rows of either half of the table; fails by chance once in a million runs (5 standard deviations)."""
    sample = Sample(2_000, seed=0)
    for start in range(0, 20_000, 500):
        rows = np.arange(start, start + 500)
        sample.add(rows % 2 == 0, [rows], np.where(rows < 10_000, 1, 3))
    secrets, columns = sample.table()
    assert secrets.sum() == 1_000
    early = np.count_nonzero(columns[0] < 10_000)
    assert abs(early - 500) < 5 * np.sqrt(2_000 * 0.25 * 0.75)
    assert ((columns[0] % 2 == 0) == secrets).all()


def test_memory_does_not_grow_with_the_file(tmp_path):
    """Four times as many rows take less than a quarter of the 16 bytes each that their two columns hold."""
    rng, peaks = np.random.default_rng(0), []
    part = pa.table(
        {
            "s": rng.integers(0, 2, 500_000),
            "score": rng.normal(size=500_000),
        }
    )
    for rows in (2_000_000, 8_000_000):
        with parquet.ParquetWriter(tmp_path / "t.parquet", part.schema) as file:
            for _ in range(rows // 500_000):
                file.write_table(part)
        script = (
            "import resource, subprocess, sys\n"
            "done = subprocess.run([sys.executable, '-m', 'tacit', *sys.argv[1:]])\n"
            "print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        arguments = ("audit", "t.parquet", "--secret", "s", "--output", "score", "--noise", "0.2", "--quiet")
        finished = subprocess.run(
            [sys.executable, "-c", script, *arguments, "--attack-rows", "0"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        code, peak = map(int, finished.stdout.split())
        assert code == 0, finished.stderr
        peaks.append(peak * (1 if sys.platform == "darwin" else 1024))
    assert peaks[1] < 1e9
    assert peaks[1] - peaks[0] < 0.25 * 6_000_000 * 16
