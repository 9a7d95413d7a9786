"""The menu of what could be released instead: true mechanisms, certified together, with their price."""

import json

import numpy as np
import pyarrow as pa
import pytest
from commands import assert_one_line_error
from pages import Page
from pyarrow import csv, parquet
from scipy import stats

from tacit import InputError
from tacit.audit import audit_file, certify, release_menu
from tacit.audit.menu import _mechanisms, _parts

ROWS = 6_000
RNG = np.random.default_rng(5)
SECRET, LABEL = RNG.integers(0, 2, ROWS), RNG.integers(0, 2, ROWS)
SCORE = 1 / (1 + np.exp(-(RNG.normal(size=ROWS) + 4 * LABEL - 2 + 0.8 * SECRET)))
SOFTMAX = RNG.dirichlet([2.0, 1.0, 1.0], ROWS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("menu")
    columns = {"s": SECRET, "score": SCORE, "label": LABEL, "class": LABEL + 3}
    columns |= {f"p{place}": SOFTMAX[:, place] for place in range(3)}
    parquet.write_table(pa.table(columns), folder / "t.parquet")
    csv.write_csv(pa.table(columns), folder / "t.csv")
    return folder


def test_options_are_certified_as_the_library_certifies_them_released():
    """By hand, from the rows that do not fix the scale, with an equal share of the failure probability each."""
    menu = release_menu(SECRET, SCORE, failure_probability=0.06, seed=3)
    _, rest = _parts(ROWS, 3)
    assert menu.rows == len(rest) == ROWS - 600
    options = {"failure_probability": 0.01, "seed": 3}
    by_hand = {
        "rounded to multiples of 0.1": certify(SECRET[rest], np.rint(SCORE[rest] / 0.1), **options),
        "as whether it is at least 0.5": certify(SECRET[rest], SCORE[rest] >= 0.5, **options),
        "with Gaussian noise of 0.3": certify(SECRET[rest], SCORE[rest], noise=0.3, **options),
    }
    found = {option.what: option for option in menu.options}
    assert len(found) == 6
    for what, certificate in by_hand.items():
        assert found[what].certificate.advantage == certificate.advantage
    assert found["rounded to multiples of 0.1"].change == pytest.approx(
        np.abs(np.round(SCORE[rest], 1) - SCORE[rest]).mean()
    )
    assert found["with Gaussian noise of 0.3"].change == pytest.approx(0.3 * np.sqrt(2 / np.pi))
    assert found["as whether it is at least 0.5"].change is None


def test_numbers_that_are_round_already_do_not_change():
    found = {option.what: option for option in release_menu(SECRET, np.round(SCORE, 1)).options}
    assert found["rounded to multiples of 0.1"].change == 0


def test_the_scale_is_fixed_on_rows_that_are_not_certified():
    own, rest = _parts(ROWS, 0)
    assert set(own) | set(rest) == set(range(ROWS))
    assert not set(own) & set(rest)
    far = SCORE.copy()
    far[rest[0]] = 7_000.0
    assert [one.what for one in release_menu(SECRET, far).options[:3]] == [
        f"rounded to multiples of {step}" for step in ("0.01", "0.1", "0.25")
    ]
    scaled = release_menu(SECRET, 300 * SCORE)
    assert [one.what for one in scaled.options] == [
        *(f"rounded to multiples of {step}" for step in ("10", "100", "250")),
        *(f"with Gaussian noise of {size}" for size in ("100", "300")),
    ]


def test_mechanisms_look_at_one_record_alone():
    for columns in ([SCORE], list(SOFTMAX.T)):
        for mechanism in _mechanisms([one[:50] for one in columns]):
            together = np.array(mechanism.applied(columns))[:, :40]
            alone = [np.array(mechanism.applied([one[[row]] for one in columns])) for row in range(40)]
            assert (np.concatenate(alone, axis=1) == together).all(), mechanism.what


def test_the_sign_of_a_zero_is_counted_as_released():
    """Rounding keeps it in most languages, and it tells which side of 0 the number was on."""
    secret = np.arange(4_000) % 2
    output = np.where(secret == 1, 0.004, -0.004) * RNG.random(4_000)
    output[:400] = RNG.normal(size=400)
    menu = release_menu(secret, output)
    assert {one.what: one.certificate.advantage for one in menu.options}["rounded to multiples of 1"] > 0.8


def test_the_price_is_the_accuracy_that_is_left():
    menu = release_menu(SECRET, SCORE, target=LABEL)
    found = {option.what: option.accuracy for option in menu.options}
    best = np.mean((SCORE > 0.5) == LABEL)
    assert abs(menu.accuracy - best) < 0.02
    assert abs(found["as whether it is at least 0.5"] - best) < 0.02
    noisy = SCORE + 0.3 * RNG.normal(size=ROWS)
    assert abs(found["with Gaussian noise of 0.3"] - np.mean((noisy > 0.5) == LABEL)) < 0.03
    cheapest = menu.meeting(0.9)
    assert [one.accuracy for one in cheapest] == sorted((one.accuracy for one in cheapest), reverse=True)
    assert menu.meeting(0.001) == ()


def test_all_limits_hold_together():
    """Outputs of thirty kinds, so that every truth is known. 30 tables a law; false alarms: 1e-5.

    Limits that are wrong in six of ten tables are noticed with a probability of 0.98.
    """
    source, runs, failure = np.random.default_rng(9), 30, 0.1
    kinds = source.random((30, 1)) * 0.998 + 0.001
    for strength in (0.0, 0.5):
        one = (1 + strength * np.sign(kinds[:, 0] - 0.5)) / 30
        laws = [(2 / 30 - one) / (2 / 30 - one).sum(), one / one.sum()]
        truths = {mechanism.what: _truth(mechanism, kinds, laws) for mechanism in _mechanisms(list(kinds.T))}
        wrong = 0
        for run in range(runs):
            places = np.concatenate([source.choice(30, 250, p=law) for law in laws])
            secret = np.repeat([0, 1], 250)
            menu = release_menu(secret, kinds[places], failure_probability=failure, seed=run)
            wrong += any(option.certificate.advantage < truths[option.what] for option in menu.options)
        assert wrong <= stats.binom.isf(1e-5, runs, failure)


def _truth(mechanism, kinds, laws):
    """The advantage that a release allows, less what the sum may be too large by."""
    if mechanism.noise is None:
        seen = np.stack(mechanism.applied(list(kinds.T)), axis=1)
        _, cells = np.unique(seen, axis=0, return_inverse=True)
        masses = [np.bincount(cells.ravel(), weights=law) for law in laws]
        return np.abs(masses[0] - masses[1]).sum() / 2 - 1e-12
    grid = np.linspace(-3, 4, 4001)
    densities = stats.norm.pdf(grid[:, None], kinds[:, 0], mechanism.noise) @ np.array(laws).T
    return np.abs(densities[:, 0] - densities[:, 1]).sum() * (grid[1] - grid[0]) / 2 - 1e-6


def test_a_ceiling_that_is_not_met_brings_the_menu(folder, here):
    common = ("audit", "t.csv", "--secret", "s", "--output", "score", "--attack-rows", "0", "--json", "a.json")
    finished = here(folder, *common, "--require-advantage", "0.2", "--target", "label", "--report", "a.html")
    assert finished.returncode == 1, finished.stderr
    menu = json.loads((folder / "a.json").read_text())["detail"]["menu"]
    assert menu["failure_probability"] == 0.05
    assert all(0 <= option["advantage"] <= 1 and 0.4 < option["accuracy"] < 1 for option in menu["options"])
    assert "What could be released instead" in finished.stdout
    assert max(len(line) for line in finished.stdout.splitlines()) <= 84
    page = Page((folder / "a.html").read_text())
    assert page.text.index("What to change") < page.text.index("What could be released instead")
    met = [option for option in menu["options"] if option["advantage"] <= 0.2]
    best = max(met, key=lambda option: option["accuracy"])
    assert f"Release column 'score' {best['what']}: nobody's advantage" in " ".join(finished.stdout.split())


def test_the_menu_comes_when_it_is_asked_for(folder, here):
    common = ("audit", "t.parquet", "--secret", "s", "--attack-rows", "0", "--json", "a.json")

    def menu(*options):
        assert here(folder, *common, *options).returncode == 0
        return json.loads((folder / "a.json").read_text())["detail"]["menu"]

    assert menu("--output", "score") is None
    assert menu("--output", "score", "--noise", "2", "--require-advantage", "0.5") is None
    assert len(menu("--output", "score", "--noise", "2", "--menu")["options"]) == 6
    assert menu("--output", "class", "--menu") is None  # categories
    of_vectors = menu("--output", "p*", "--output", "score", "--code", "tree", "--menu")
    assert [option["what"] for option in of_vectors["options"]][3:5] == [
        "as the largest, rounded to 0.1",
        "as the name of the largest alone",
    ]
    assert of_vectors["rows"] < ROWS - ROWS // 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--target", "label"), "--target must come with --menu or --require-advantage"),
        (("--target", "score", "--menu"), "must name different columns"),
        (("--target", "p0", "--menu"), "must be the label of each of"),
    ],
)
def test_targets_that_do_not_fit_are_refused(folder, here, options, message):
    common = ("audit", "t.parquet", "--secret", "s", "--output", "score", "--attack-rows", "0")
    assert_one_line_error(here(folder, *common, *options), message)


@pytest.mark.parametrize("output", [LABEL, LABEL.astype(str), np.where(SCORE > 0.5, np.inf, SCORE)])
def test_categories_have_no_menu(output):
    with pytest.raises(InputError, match="must hold finite numbers that float64 tells apart, some"):
        release_menu(SECRET, output)


def test_numbers_half_way_may_be_rounded_to_either_side():
    """Python rounds 0.45 up, numpy's quotient to the even multiple; the limit holds for both."""
    secret = np.arange(4_000) % 2
    one = np.where(secret == 1, 0.45, 0.44)
    assert set(np.rint(one / 0.1)) == {4.0}
    assert {round(number, 1) for number in one.tolist()} == {0.4, 0.5}
    for output in (one, one.astype(np.float32), np.stack([one, 0.1 * one], axis=1)):
        found = {option.what: option.certificate.advantage for option in release_menu(secret, output).options}
        assert found["rounded to multiples of 0.1"] == 1
        assert found.get("as the largest, rounded to 0.1", 1) == 1
        assert found["rounded to multiples of 0.25"] < 0.2


def test_a_menu_says_nothing_of_slices(tmp_path, here):
    """A few records are fully exposed: on the whole table an option keeps the ceiling, in their slice it does not."""
    few = np.arange(ROWS) % 20 < 2
    score = np.where(few, 0.1 + 0.8 * SECRET, RNG.random(ROWS))
    csv.write_csv(pa.table({"s": SECRET, "few": few, "score": score}), tmp_path / "t.csv")
    common = ("audit", "t.csv", "--secret", "s", "--output", "score", "--attack-rows", "0")
    whole = " ".join(here(tmp_path, *common, "--require-advantage", "0.25").stdout.split())
    assert "nobody's advantage in telling s then exceeds" in whole
    sliced = " ".join(here(tmp_path, *common, "--require-advantage", "0.25", "--slice", "few").stdout.split())
    assert "say nothing about a slice" in sliced
    assert "then exceeds" not in sliced


def test_rows_that_repeat_have_no_menu(tmp_path):
    """It would need independent rows, too."""
    rows = np.repeat(np.arange(500), 3)
    csv.write_csv(pa.table({"s": SECRET[rows], "score": SCORE[rows]}), tmp_path / "t.csv")
    np.savez(tmp_path / "t.npz", s=SECRET[rows], score=SCORE[rows])
    for file in ("t.csv", "t.npz"):
        found = audit_file(
            tmp_path / file,
            secret="s",  # noqa: S106
            output="score",
            require_advantage=0.9,
            menu=True,
            attack_rows=0,
            pictures=False,
        )
        assert found.detail["copied"] == {"times": 3, "rows": 500}
        assert found.detail["menu"] is None
        assert not found.met
        assert not found.choices
        assert not any("proven" in change.what for change in found.changes)


def test_each_secret_has_its_menu(folder):
    found = audit_file(
        folder / "t.parquet", secret=["s", "label"], output="score", menu=True, attack_rows=0, pictures=False
    )
    assert [table.title.partition(":")[0] for table in found.choices] == ["s", "label"]


def test_vectors_without_fractions_have_no_menu(tmp_path):
    np.savez(tmp_path / "t.npz", s=SECRET, X=np.rint(100 * SOFTMAX))
    found = audit_file(
        tmp_path / "t.npz",
        secret="s",  # noqa: S106
        output="X",
        code="kmeans:4",
        require_advantage=0.2,
        attack_rows=0,
        pictures=False,
    )
    assert found.detail["menu"] is None
    assert not found.met


@pytest.mark.parametrize(
    "pair", [("0.45000000000000000001", "0.44999999999999999999"), (np.int64(45 * 10**16 + 1), np.int64(45 * 10**16))]
)
def test_numbers_that_float64_merges_have_no_menu(pair):
    """Rounded as decimals, these would tell the secret."""
    secret = np.arange(2_000) % 2
    output = {"a": np.where(secret == 1, *pair), "b": np.arange(2_000) % 7 / 8}
    with pytest.raises(InputError, match="numbers that float64 tells apart"):
        release_menu(secret, output)
    assert release_menu(secret, np.where(secret == 1, "0.5", "0.50")).options
