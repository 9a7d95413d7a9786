"""Secrets of several values and numbers, from tables to reports. False alarms of simulations: below 1e-6 each."""

import csv
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from tacit import InputError
from tacit.audit import (
    Audit,
    ClassCertificate,
    NumberCertificate,
    audit,
    audit_file,
    certify,
    certify_classes,
    certify_number,
)
from tacit.audit.guess_attacks import guess_attacks
from tacit.audit.guess_counts import ClassCounts, NumberCounts, drawing_order
from tacit.audit.guesses import certify_class_counts, certify_number_counts

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FAILURE, RUNS = 0.1, 40


@pytest.fixture(scope="module")
def benchmark():
    """benchmarks/audit.py, whose laws these are; it tries 400 tables of two sizes each."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("audit")
    finally:
        sys.path.remove(str(BENCHMARKS))


def too_many(runs):
    return stats.binom.isf(1e-6, runs, FAILURE)


def test_certificates_for_classes_are_wrong_no_more_often_than_stated(benchmark):
    laws = benchmark.class_laws()
    assert len(laws) >= 8
    for name, law in laws.items():
        share = benchmark.missed_classes(law, rows=300, runs=RUNS, failure=FAILURE)
        assert share * RUNS <= too_many(RUNS), name


def test_certificates_for_numbers_are_wrong_no_more_often_than_stated(benchmark):
    laws = benchmark.number_laws(200)
    assert len(laws) >= 8
    for name, law in laws.items():
        assert benchmark.missed_numbers(law, runs=RUNS, failure=FAILURE) * RUNS <= too_many(RUNS), name


def patients(rows=4000, seed=0, kept=0.3):
    rng = np.random.default_rng(seed)
    names = np.array(["asthma", "cold", "flu", "none"])
    place = rng.choice(4, rows, p=[0.1, 0.2, 0.3, 0.4])
    code = np.where(rng.random(rows) < kept, place, rng.integers(0, 4, rows))
    age = np.clip(np.round(rng.normal(45, 15, rows)), 0, 100)
    score = np.round(age / 20 + rng.normal(size=rows)) + 0.0  # no −0.0, which is an output of its own
    return names[place], code, age, score


def test_what_a_certificate_for_classes_says():
    """1000 rows of four values, 400 of the most frequent one; the output keeps the value of 3 rows in 5, by hand."""
    secret = np.repeat(list("abcd"), [400, 300, 200, 100])
    output = np.where(np.arange(1000) % 5 < 3, secret, "a")
    found = certify_classes(secret, output, failure_probability=0.05)
    correct = 400 + 180 + 120 + 60
    assert found.plug_in == correct / 1000
    assert found.blind == 0.4
    assert found.accuracy == pytest.approx(stats.beta.isf(0.035, correct + 1, 1000 - correct), rel=1e-9)
    assert found.gain == pytest.approx(found.accuracy / 0.4)
    assert found.added == pytest.approx(found.accuracy - 0.4)
    assert found.advantage == pytest.approx((found.accuracy - 0.4) / 0.6)
    assert found.guarantee.value == found.advantage
    assert found.guarantee.references[0] == "theory.guessing.accuracy_upper"
    assert found.meets(advantage=0.7)
    assert not found.meets(advantage=0.5)
    assert "names the secret rightly in more than" in repr(found)


def test_of_two_values_it_agrees_with_the_certificate_for_two():
    """The same counts and the same theorem: only the shares of the failure probability differ."""
    rng = np.random.default_rng(1)
    secret = np.arange(20_000) % 2
    for leak in (0.0, 0.1, 0.5):
        output = np.where(rng.random(20_000) < leak, secret, rng.integers(0, 2, 20_000))
        two, classes = certify(secret, output), certify_classes(secret, output)
        assert classes.advantage == pytest.approx(two.advantage, rel=0.15)
        alone = certify(secret, output, loss="zero-one", failure_probability=0.05 * 0.7)
        assert classes.advantage == pytest.approx(alone.advantage, rel=1e-6)


def test_outputs_of_many_values_are_certified_by_pairs():
    rng = np.random.default_rng(2)
    secret, output = rng.integers(0, 10, 40_000), rng.integers(0, 4_000, 40_000)
    found = certify_classes(secret, output)
    assert found.guarantee.references[0] == "theory.guessing.accuracy_from_collisions"
    assert found.plug_in > 0.25
    assert 0.1 <= found.accuracy < 0.2


def test_a_continuous_output_bounds_nothing(tmp_path):
    secret, _, age, _ = patients(200)
    output = np.random.default_rng(3).random(200)
    for certificate in (certify_classes(secret, output), certify_number(age, output, secret_range=(0, 110))):
        assert certificate.advantage == 1
        assert not certificate.meets(advantage=1)
    lines = [f"{one},{number}" for one, number in zip(secret, output, strict=True)]
    (tmp_path / "t.csv").write_text("s,o\n" + "\n".join(lines) + "\n")
    found = audit_file(tmp_path / "t.csv", secret="s", output="o", attack_rows=0, pictures=False, require_advantage=1)  # noqa: S106
    assert not found.met
    assert any("Nothing can be certified of so many" in sentence for sentence in found.summary)


def test_a_number_and_what_it_says():
    _, _, age, score = patients()
    found = certify_number(age, score, secret_range=(0, 110))
    means = {value: age[score == value].mean() for value in np.unique(score)}
    residual = age - np.array([means[value] for value in score])
    assert found.plug_in == pytest.approx(1 - residual.var() / age.var())
    assert found.deviation == pytest.approx(age.std())
    assert found.plug_in < found.explained < found.plug_in + 0.12
    assert found.error == pytest.approx(age.std() * np.sqrt(1 - found.explained), rel=1e-9)
    wider = certify_number(age, score, secret_range=(-100, 1000))
    assert wider.explained > found.explained


def test_units_and_spelling_do_not_matter():
    _, _, age, score = patients(1000)
    found = certify_number(age, score, secret_range=(0, 100)).explained
    assert certify_number(age * 1000 - 7, score, secret_range=(-7, 99_993)).explained == pytest.approx(found, rel=1e-6)
    texts = np.array([f"{one:.1f}" for one in age])
    assert certify_number(texts, score, secret_range=(0, 100)).explained == found


def test_the_order_of_rows_and_batches_do_not_matter():
    secret, code, age, score = patients()
    order = np.random.default_rng(3).permutation(len(secret))
    whole = certify_classes(secret, code)
    assert certify_classes(secret[order], code[order]) == whole
    parts, sums = ClassCounts(), NumberCounts(0, 110)
    for part in np.array_split(order, 7):
        parts.add(secret[part], code[part])
        sums.add(age[part], score[part])
    words = {"name": "the output", "about": "the secret", "failure_probability": 0.05}
    assert certify_class_counts(parts, **words) == whole
    in_parts = certify_number_counts(sums, **words).explained
    assert in_parts == pytest.approx(certify_number(age, score, secret_range=(0, 110)).explained, rel=1e-12)


def test_nobody_chooses_the_rows_whose_pairs_are_counted():
    """They follow from the counts: the same for other names of outputs and secrets, others for other counts."""
    rng = np.random.default_rng(5)
    secret, output = rng.choice(4, 20_000, p=[0.28, 0.26, 0.24, 0.22]), rng.integers(0, 4_000, 20_000)
    found = certify_classes(secret, output)
    assert found.guarantee.references[0] == "theory.guessing.accuracy_from_collisions"
    for _ in range(5):
        names, outputs = rng.permutation(4), rng.permutation(4_000)
        assert certify_classes(names[secret].astype(str), outputs[output].astype(str)).limit == found.limit
    assert audit(secret, output, attacks=[], seed=7).certificate.limit == found.limit
    seeds = set()
    for _ in range(100):
        counts = rng.integers(1, 30, 24)
        cells, classes = np.repeat(np.arange(8), 3), np.tile(np.arange(3), 8)
        order, seed = drawing_order(cells, classes, counts)
        assert sorted(order) == list(range(24))
        assert (np.diff(np.unique(classes[order], return_index=True)[1]) % 8 == 0).all()  # class by class
        shuffled = rng.permutation(24)
        again, same = drawing_order(cells[shuffled], classes[shuffled], counts[shuffled])
        assert (counts[shuffled][again] == counts[order]).all()
        assert same == seed
        seeds.add(seed)
    assert len(seeds) == 100


def test_weights_are_rows():
    secret, code, _, _ = patients(500)
    repeated = np.repeat(np.arange(500), 3)
    assert certify_classes(secret, code, weights=np.full(500, 3)) == certify_classes(secret[repeated], code[repeated])


def test_outputs_that_differ_in_the_last_bit_are_two():
    secret = np.repeat(list("abc"), 100)
    output = np.where(secret == "a", 0.0, -0.0)  # noqa: S105
    assert certify_classes(secret, output).cells == 2
    assert certify_number(np.arange(300.0), output, secret_range=(0, 300)).cells == 2


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        (["a", "a", "a"], "two values or more"),
        (["a", "b", "c"], "no more values than half of the rows"),
        ([1.5, 2.5, float("nan")], "no missing entry"),
        (np.arange(21), "20 different numbers or fewer"),
        ([str(one) for one in range(21)], "20 different numbers or fewer"),
        (["unknown", *(str(one) for one in range(21))], "20 different numbers or fewer"),
        ([" ill", "ill", "well"] * 9, "each value in one way"),
        (['"ill"', "ill", "well"] * 9, "each value in one way"),
        (["1", "1.0", "0"] * 9, "each value in one way"),
        ([f"name {one}" for one in range(1001)], "1000 different values or fewer"),
    ],
)
def test_secrets_that_are_no_classes_are_refused(secret, words):
    with pytest.raises(InputError, match=words):
        certify_classes(secret, np.zeros(len(secret)))


@pytest.mark.parametrize("wrong", [(0,), (5, 1), (1, 1), (0, float("inf")), "ab", None, (0, float("nan"))])
def test_ranges_that_are_none_are_refused(wrong):
    with pytest.raises(InputError, match="secret_range"):
        certify_number([1.0, 2.0, 3.0], [0, 1, 1], secret_range=wrong)


@pytest.mark.parametrize("leak", ["half of the values", "the frequent value"])
def test_what_right_guesses_hide_is_said(leak):
    """The output tells a group of values, or the frequent value, though guesses are hardly more often right."""
    rng = np.random.default_rng(5)
    if leak == "half of the values":
        secret = rng.integers(0, 500, 20_000)
        output = secret < 250
    else:
        secret = rng.choice(3, 20_000, p=[0.9, 0.05, 0.05])
        output = (secret == 0) & (rng.random(20_000) < 0.85)
    secret = np.array([f"value {number}" for number in range(500)])[secret]
    found = certify_classes(secret, output)
    assert found.advantage < 0.05
    assert "tells a value from all others" in found.caution
    assert "exact value" in " ".join(found.guarantee.detail["scope"])
    assert not certify_classes(secret, rng.permutation(output)).caution


def test_numbers_among_far_ones_are_not_called_hidden(tmp_path):
    """99 % of the numbers are told by the output, and yet R² is small."""
    rng = np.random.default_rng(5)
    near = rng.integers(0, 10, 40_000)
    secret = np.where(rng.random(40_000) < 0.01, 10**6, near)
    found = certify_number(secret, near, secret_range=(0, 10**6))
    assert found.advantage < 0.05
    assert "Half of the numbers" in found.caution
    assert "known exactly" in " ".join(found.guarantee.detail["scope"])
    assert not certify_number(near, rng.permutation(near), secret_range=(0, 10)).caution
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("s", "t"), *zip(secret.tolist(), near.tolist(), strict=True)])
    page = audit_file(
        tmp_path / "t.csv",
        secret="s",  # noqa: S106
        output="t",
        secret_range=(0, 10**6),
        attack_rows=0,
        pictures=False,
    )
    assert page.verdicts[0].level == "weak"
    assert found.caution in page.summary


def test_numbers_that_rounding_would_merge_are_refused():
    """Among numbers of 2**60, float64 knows every 256th: the rest of the secret would not be certified."""
    with pytest.raises(InputError, match="wider"):
        NumberCounts(2.0**60, 2.0**60 + 512)


def test_numbers_far_from_zero_keep_their_places():
    counts = NumberCounts(10.0**15, 10.0**15 + 10.0**10)
    assert counts.scaled(10**15 + np.array([0, 10**10 // 4, 10**10])).tolist() == [-1.0, -0.5, 1.0]


def test_attacks_come_close_and_never_contradict():
    """Both have to fail for a contradiction: certificates fail with probability 0.1, attacks with 0.005."""
    contradicted, near = 0, []
    for seed in range(15):
        secret, code, age, score = patients(2000, seed=seed, kept=0.5)
        for certificate, column, output in (
            (certify_classes(secret, code, failure_probability=FAILURE), secret, code),
            (certify_number(age, score, secret_range=(0, 110), failure_probability=FAILURE), age, score),
        ):
            tried = guess_attacks(column, [output], certificate=certificate, failure_probability=0.005, seed=seed)
            found = Audit(certificate=certificate, attacks=tried)
            contradicted += found.contradicted
            near.append(found.high - max(attack.value for attack in tried))
    assert contradicted == 0
    assert np.mean(near) < 0.15


def test_an_attack_weighs_classes_as_the_table_does():
    """The share of right guesses is that of the table, even if the sample has too many rows of one class."""
    secret = np.repeat(["rare", "usual", "often"], [100, 400, 500])
    certificate = certify_classes(secret, np.where(secret == "rare", 1, 0))  # noqa: S105
    many = np.repeat(["rare", "usual", "often"], [300, 800, 1000])
    tried = guess_attacks(
        many, [np.where(many == "rare", 1, 0)], certificate=certificate, failure_probability=0.01, seed=0
    )
    assert tried[0].reached == pytest.approx(0.1 + 0.5, abs=0.03)


def test_audit_chooses_by_the_secret():
    secret, code, age, score = patients(800)
    assert isinstance(audit(secret, code, attacks=[]).certificate, ClassCertificate)
    number = audit(age, score, secret_range=(0, 110), attack_rows=400)
    assert isinstance(number.certificate, NumberCertificate)
    assert len(number.attacks) == 2
    with pytest.raises(InputError, match="noise must be left out for a secret of more than two values"):
        audit(secret, code, noise=1.0)
    with pytest.raises(InputError, match="20 different numbers or fewer"):
        audit(age, score)
    ceiling = audit(secret, code, attacks=[], require_advantage=0.0001)
    assert ceiling.verdict.startswith("Not proven: the largest advantage of anyone who sees only the output lies")


@pytest.fixture
def table(tmp_path):
    secret, code, age, score = patients(3000)
    member = np.random.default_rng(9).integers(0, 2, 3000)
    with (tmp_path / "t.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["disease", "code", "age", "score", "member"])
        rows.writerows(zip(secret, code, age, score, member, strict=True))
    return tmp_path / "t.csv"


def test_the_file_gives_the_numbers_of_the_function(table):
    secret, code, age, score = patients(3000)
    options = {"attack_rows": 0, "pictures": False}
    found = audit_file(table, secret="disease", output="code", **options)  # noqa: S106
    whole = certify_classes(secret, code.astype(str), name="column 'code'", about="column 'disease'")
    assert found.comparisons[0].guarantee == whole.guarantee
    assert found.detail["readings"]["share_of_right_guesses"] == whole.accuracy
    found = audit_file(table, secret="age", output="score", secret_range=(0, 110), **options)  # noqa: S106
    number = certify_number(age, score, secret_range=(0, 110))
    assert found.detail["high"] == pytest.approx(number.explained, rel=1e-12)


def test_several_secrets_share_the_failure_probability(table):
    found = audit_file(
        table, secret=["disease", "member"], output="code", attack_rows=0, pictures=False, require_advantage=0.9
    )
    assert found.summary[0].startswith("The limits for both secrets hold together")
    assert [one.guarantee.failure_probability for one in found.comparisons] == [0.025, 0.025]
    assert found.met
    assert set(found.detail["secrets"]) == {"disease", "member"}
    assert "what they are together is a secret of its own" in found.summary[1]
    strict = audit_file(
        table, secret=["disease", "member"], output="code", attack_rows=0, pictures=False, require_advantage=0.05
    )
    assert not strict.met


def test_the_command_certifies_and_can_be_repeated(table, here):
    given = ("audit", table.name, "--secret", "age", "--secret-range", "0", "110", "--output", "score")
    finished = here(
        table.parent, *given, "--require-advantage", "0.9", "--json", "a.json", "--certificate", "c.json", "--quiet"
    )
    assert finished.returncode == 0, finished.stderr
    detail = json.loads((table.parent / "a.json").read_text())["detail"]
    assert detail["secret"] == {"column": "age", "kind": "number", "values": None, "range": [0.0, 110.0]}
    again = here(table.parent, "verify", "c.json", "--replay", table.name)
    assert "NOT CHECKABLE HERE" in again.stdout
    assert "The same run gave the same claims" in again.stdout
    refused = here(table.parent, *given, "--require-advantage", "0.01", "--attack-rows", "0", "--quiet")
    assert refused.returncode == 1


def test_the_page_shows_both_ends(table):
    page = audit_file(table, secret="disease", output="code", attack_rows=1000).to_html()  # noqa: S106
    assert "How much better than a blind guess" in page
    assert "gain over the best blind guess" in page
