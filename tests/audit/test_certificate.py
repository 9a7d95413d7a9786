"""Certificates as people use them: what is said, what is refused, how tight, and what follows."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from tacit import Adversary, Attack, Guarantee, IncomparableError, InputError, NoTheoremError
from tacit.audit import (
    READINGS,
    SCOPE,
    Audit,
    ImpliedByDP,
    Tally,
    attempts,
    audit,
    certify,
    certify_network,
    certify_slices,
    certify_tally,
    privacy_curve,
    rows_needed,
)
from tacit.audit.limits import shares
from tacit.theory import certificates, leakage
from tacit.theory.leakage import advantage_upper

RNG = np.random.default_rng(0)
SECRET = np.arange(2000) % 2
OUTPUT = RNG.integers(0, 4, 2000)


def test_a_certificate_says_everything():
    found = certify(SECRET, OUTPUT, failure_probability=0.05, loss="squared", name="the predicted class")
    guarantee = found.guarantee
    assert guarantee == Guarantee.from_json(guarantee.to_json())
    assert str(guarantee).startswith("advantage (TPR − FPR) in telling 1 from 0 by the predicted class is at most 0.1")
    assert "anyone who sees only the predicted class, except with probability 0.05" in str(guarantee)
    assert "rows are independent" in guarantee.assumed(checked_by="caller")[0]
    assert guarantee.detail["scope"] == SCOPE
    assert any("differential privacy" in line for line in SCOPE)
    for reading in READINGS:
        assert math.isfinite(found.guarantee_of(reading).value)
        assert found.guarantee_of(reading).side == (
            "at_least" if "loss" in reading or reading == "error" else "at_most"
        )


def test_readings_follow_from_one_another():
    found = certify(SECRET, OUTPUT, failure_probability=0.05, loss="squared")
    assert found.squared_loss == pytest.approx(1 - found.squared)
    assert found.advantage == pytest.approx(math.sqrt(found.squared))
    assert found.balanced_accuracy == pytest.approx((1 + found.advantage) / 2)
    assert found.bits == pytest.approx(found.information / math.log(2))
    assert found.log_loss == pytest.approx(math.log(2) - found.information)
    assert found.error == pytest.approx(1 - found.balanced_accuracy)
    assert 0.5 < found.auc < found.balanced_accuracy + 0.01
    false = np.linspace(0, 1, 101)
    true = found.tpr_at(false)
    assert (true - false).max() == pytest.approx(found.advantage, rel=1e-3)
    assert found.hockey_stick(0.0) == pytest.approx(found.advantage)
    assert (np.diff(found.hockey_stick([0.0, 0.5, 1.0, 5.0])) <= 0).all()
    assert found.accuracy(0.5) == pytest.approx(found.balanced_accuracy)
    assert found.accuracy(1e-305) == found.accuracy(5e-324) == 1  # "never" is right
    # Against a rare secret nobody beats "never" by much.
    assert 0.99 < found.accuracy(0.01) < 0.99 + 0.01 * float(found.hockey_stick(math.log(99))) + 1e-9


@pytest.mark.parametrize("loss", ["squared", "log", "zero-one", "joint"])
@pytest.mark.parametrize("sampling", ["by class", "pairs"])
def test_more_rows_and_more_risk_certify_more(loss, sampling):
    options = {"loss": loss, "sampling": sampling}
    bounds = [certify(SECRET, OUTPUT, failure_probability=delta, **options) for delta in (0.2, 0.05, 0.001)]
    for name in ("squared", "information", "variation"):
        values = [getattr(found, name) for found in bounds]
        assert values == sorted(values)
    many = certify(np.tile(SECRET, 20), np.tile(OUTPUT, 20), failure_probability=0.05, **options)
    assert many.squared < bounds[1].squared


@pytest.mark.parametrize("sampling", ["by class", "pairs"])
@pytest.mark.parametrize("form", ["sharp", "closed"])
def test_a_certificate_is_its_theorem_at_the_plug_in(sampling, form):
    """Counted by hand: an output with two values, 600 of 1000 against 500 of 1000."""
    secret, output = np.repeat([1, 0], 1000), np.concatenate([np.arange(1000) < 600, np.arange(1000) < 500])
    v = 0.5 * (0.1**2 / 1.1 + 0.1**2 / 0.9)
    nats = 0.5 * sum(p * math.log(2 * p / (p + q)) for p, q in ((0.6, 0.5), (0.4, 0.5), (0.5, 0.6), (0.5, 0.4)))
    sizes = {"positives": 1000, "negatives": 1000, "failure_probability": 0.05, "paired": sampling == "pairs"}
    options = {"failure_probability": 0.05, "form": form, "sampling": sampling}
    squared, log = (getattr(certificates, f"{name}_{form}") for name in ("squared", "log"))
    assert certify(secret, output, loss="squared", **options).squared == pytest.approx(squared(v, **sizes), rel=1e-9)
    assert certify(secret, output, loss="log", **options).information == pytest.approx(log(nats, **sizes), rel=1e-9)
    variation = certify(secret, output, loss="zero-one", **options).variation
    if form == "sharp":
        assert variation == certificates.variation_exact(1100, **sizes)
    else:
        assert variation == pytest.approx(certificates.variation_upper(0.1, **sizes), rel=1e-9)


def test_sharp_is_within_closed_and_closed_within_printed():
    options = {"failure_probability": 0.05, "sampling": "pairs"}
    for loss, alphabet in (("squared", None), ("log", 4)):
        sharp, closed, printed = (
            certify(SECRET, OUTPUT, loss=loss, form=form, alphabet=alphabet if form == "printed" else None, **options)
            for form in ("sharp", "closed", "printed")
        )
        assert sharp.squared <= closed.squared < 0.2 * printed.squared
    assert "Theorem 3" in printed.guarantee.theorem_text
    assert "no more than 4 values" in " ".join(printed.guarantee.assumed(checked_by="caller"))


def test_alphabets_are_whole_numbers_whatever_the_form():
    for form, alphabet in (("printed", "3"), ("sharp", -7), ("sharp", 2.5)):
        with pytest.raises(InputError, match="alphabet must be a whole number ≥ 1"):
            certify(
                SECRET, OUTPUT, failure_probability=0.05, form=form, loss="log", sampling="pairs", alphabet=alphabet
            )
    # One that plays no part is no assumption.
    assert certify(SECRET, OUTPUT, failure_probability=0.05, alphabet=9) == certify(
        SECRET, OUTPUT, failure_probability=0.05
    )


def test_a_joint_certificate_is_the_intersection():
    found = certify(SECRET, OUTPUT, failure_probability=0.05, loss="joint")
    squared = certify(SECRET, OUTPUT, failure_probability=0.22 * 0.05, loss="squared")
    pairs = certify(SECRET, OUTPUT, failure_probability=0.28 * 0.05, loss="squared", form="pairwise")
    variation = certify(SECRET, OUTPUT, failure_probability=0.44 * 0.05, loss="zero-one")
    assert found.squared == min(squared.squared, pairs.squared, variation.variation)
    assert found.variation == min(squared.variation, variation.variation)
    assert (found.tpr_at([0.0, 0.1]) <= squared.tpr_at([0.0, 0.1])).all()


def test_the_region_is_the_least_of_all_limits():
    """At low false positive rates, what is measured at a few ε; everything together uses the failure probability up."""
    rng, rows = np.random.default_rng(0), 100_000
    secret = np.arange(rows) % 2
    output = rng.random(rows) < (1 + 0.3 * (2 * secret - 1)) / 2
    found = certify(secret, output, failure_probability=0.05, positive=0)
    assert math.fsum(shares("joint", "sharp", "discrete")) == pytest.approx(1, abs=1e-15)
    assert math.fsum(shares("joint", "sharp", "noisy")) == pytest.approx(1, abs=1e-15)
    epsilons, deltas = zip(*found.curve, strict=True)
    ones = [int((output == seen)[secret == 1].sum()) for seen in (0, 1)]
    zeros = [int((output == seen)[secret == 0].sum()) for seen in (0, 1)]
    for epsilon, delta in found.curve[:3]:
        plug_in = max(
            sum(max(0.0, a / (rows / 2) - math.exp(epsilon) * b / (rows / 2)) for a, b in zip(*pair, strict=True))
            for pair in ((ones, zeros), (zeros, ones))
        )
        wide = math.sqrt(math.log(8 / (0.06 * 0.05)) / 2 * (1 + math.exp(2 * epsilon)) / (rows / 2))
        assert delta == pytest.approx(plug_in + wide, rel=1e-9)
    rates = np.array([0.0, 1e-4, 1e-3, 0.01, 0.1, 0.4, 0.9])
    alone = leakage.roc_upper(rates, squared=found.squared, advantage=found.variation)
    lines = [leakage.private_roc(rates, epsilon=e, delta=d) for e, d in found.curve]
    assert (found.tpr_at(rates) == np.min([alone, *lines], axis=0)).all()
    truth = 0.001 * 1.3 / 0.7
    assert truth < found.tpr_at(0.001) < 0.03 < 0.17 < alone[2]
    assert found.hockey_stick(epsilons) == pytest.approx(deltas, rel=1e-9)
    assert found.hockey_stick(3.0) == pytest.approx(deltas[-1], rel=1e-9)
    assert "logarithmic" in found.plot().svg
    for options in ({"loss": "squared"}, {"form": "closed"}, {"form": "pairwise"}, {"method": "monotone"}):
        assert not certify(secret, output, failure_probability=0.05, **options).curve


def test_printed_theorems_are_refused_where_they_do_not_apply():
    for options in ({"sampling": "by class"}, {"loss": "zero-one"}, {"loss": "joint"}):
        with pytest.raises(NoTheoremError, match="must have sampling='pairs'"):
            certify(SECRET, OUTPUT, failure_probability=0.05, form="printed", **{"sampling": "pairs", **options})
    with pytest.raises(InputError, match="alphabet must be the number of values"):
        certify(SECRET, OUTPUT, failure_probability=0.05, form="printed", loss="log", sampling="pairs")
    with pytest.raises(NoTheoremError, match="at least"):
        certify(SECRET, OUTPUT, failure_probability=0.05, form="printed", loss="log", sampling="pairs", alphabet=10**6)


def test_continuous_outputs_are_refused_with_what_would_help():
    output = RNG.normal(size=2000)
    with pytest.raises(NoTheoremError, match=r"pass noise, round it before release.*monotone") as refusal:
        certify(SECRET, output, failure_probability=0.05)
    assert "\n" not in str(refusal.value)
    with pytest.raises(NoTheoremError, match="must be released with noise"):
        certify(SECRET, {"class": OUTPUT, "score": output}, failure_probability=0.05)
    assert certify(SECRET, np.round(output, 1), failure_probability=0.05).method == "discrete"
    assert certify(SECRET, output, failure_probability=0.05, method="discrete").advantage == 1  # asked for, and honest
    for options in (
        {"noise": 0.5},
        {"method": "monotone"},
        {"assume_max_slope": 0.1, "width": 0.5},
        {"assume_max_slope": 0.1},
    ):
        assert certify(SECRET, output, failure_probability=0.05, **options).squared < 0.1


def test_a_continuous_output_is_attacked_although_nothing_is_certified():
    output = RNG.normal(size=2000) + SECRET
    found = audit(SECRET, output, failure_probability=0.05, name="the score", require_advantage=0.3)
    assert found.high == found.guarantee.value == 1
    assert found.guarantee.references == ()
    assert "every valid limit on a continuous output without noise is 1" in found.guarantee.theorem_text
    assert "pass noise, round it before release" in found.certificate.caution
    assert {one.learner for one in found.attacks} >= {"threshold", "histogram", "boosting"}
    assert 0.15 < found.low < 0.383  # the best rule reaches 2Φ(½) − 1
    assert not found.met
    assert found.verdict.endswith("no number of rows certifies a continuous output as it is.")
    assert audit(SECRET, output, require_advantage=0.1).verdict.startswith("Broken: ")


def test_the_function_that_gives_the_number_comes_first():
    """Of a joint certificate it is the limit for total variation, or what follows from v, whichever is smaller."""
    seen = set()
    for output in (OUTPUT, SECRET, np.where(RNG.uniform(size=2000) < 0.02, SECRET, 2)):
        found = certify(SECRET, output, loss="joint")
        first = found.guarantee.references[0]
        assert (first == "theory.leakage.advantage_upper") == (advantage_upper(found.squared) == found.advantage)
        assert found.guarantee_of("auc").references[0] == "theory.leakage.auc_upper"
        assert found.guarantee_of("bits").references[0] == "theory.leakage.information_upper"
        seen.add(first)
    assert len(seen) == 2
    noisy = certify(SECRET, OUTPUT, noise=1.0, loss="log")
    assert noisy.guarantee_of("bits").references[0] == "theory.certificates.log_sharp"
    lipschitz = certify(SECRET, OUTPUT, assume_max_slope=0.1)
    assert lipschitz.guarantee_of("squared loss").references[0] == "theory.certificates.lipschitz_excess"


def test_old_names_go_on_working():
    with pytest.warns(DeprecationWarning, match="use failure_probability"):
        found = certify(SECRET, OUTPUT, delta=0.1)
    assert found == certify(SECRET, OUTPUT, failure_probability=0.1)
    with pytest.warns(DeprecationWarning, match="Certificate.delta will be removed"):
        assert found.delta == 0.1
    with pytest.warns(DeprecationWarning, match="use failure_probability"):
        assert audit(SECRET, OUTPUT, delta=0.1, attacks=()).certificate == found
    with pytest.warns(DeprecationWarning, match="use failure_probability"):
        assert rows_needed(0.1, delta=0.1) == rows_needed(0.1, failure_probability=0.1)


def test_assumptions_are_said():
    output = RNG.normal(size=2000)
    words = {
        "fresh Gaussian noise of standard deviation 0.5": {"noise": 0.5},
        "only grows, or only falls": {"method": "monotone"},
        "changes by at most 0.1 per unit": {"assume_max_slope": 0.1},
        "every secret was a fair coin": {"noise": 0.5, "sampling": "pairs"},
    }
    for text, options in words.items():
        found = certify(SECRET, output, failure_probability=0.05, **options)
        assert text in " ".join(found.guarantee.assumed(checked_by="caller"))
    assert "with Gaussian noise" in certify(SECRET, output, failure_probability=0.05, noise=0.5).output
    assert "bins and seed were chosen before" in " ".join(found.guarantee.assumed(checked_by="caller"))


def test_settings_that_differ_are_named_apart():
    output = RNG.normal(size=2000)
    first, second = (certify(SECRET, output, failure_probability=0.05, noise=noise) for noise in (0.1234561, 0.1234564))
    assert first.quantity("advantage") != second.quantity("advantage")
    first, second = (
        certify(SECRET, output, failure_probability=0.05, assume_max_slope=c, width=0.5) for c in (0.1234561, 0.1234564)
    )
    assert first.assumptions != second.assumptions


def test_chances_are_never_printed_smaller():
    found = certify_slices(SECRET, OUTPUT, np.arange(2000) % 7, failure_probability=0.05)
    assert found[0].guarantee.chance_text == "except with probability 0.00715"
    assert certify(SECRET, OUTPUT, failure_probability=0.05).guarantee.chance_text == "except with probability 0.05"
    assert (
        "except with probability 0.0101;"
        in Audit(certificate=certify(SECRET, OUTPUT, failure_probability=0.010049), require_advantage=0.5).verdict
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "monotone", "noise": 0.1}, "must be one of noisy"),
        ({"method": "noisy"}, "must be one of discrete, monotone"),
        ({"width": 0.1}, "must be 'lipschitz' where width is given"),
        ({"method": "lipschitz"}, "must be given with method='lipschitz'"),
        ({"assume_max_slope": 1.0, "method": "monotone"}, "must be given with method='lipschitz'"),
        ({"noise": 0.1, "width": 0.1}, "must not be given together"),
    ],
)
def test_choices_that_do_not_fit_are_refused(options, words):
    with pytest.raises(InputError, match=words):
        certify(SECRET, OUTPUT, failure_probability=0.05, **options)


def test_monotone_needs_numbers():
    with pytest.raises(InputError, match="must be one of discrete"):
        certify(SECRET, np.where(OUTPUT > 1, "a", "b"), failure_probability=0.05, method="monotone")


def test_a_lipschitz_posterior_has_a_theorem_for_the_squared_loss_alone():
    with pytest.raises(NoTheoremError, match="loss='squared'"):
        certify(SECRET, OUTPUT, failure_probability=0.05, assume_max_slope=0.1, width=1.0, loss="log")


def test_a_secret_that_was_no_fair_coin_is_noticed():
    secret = np.arange(2000) % 10 == 0
    with pytest.raises(InputError, match="no fair coin"):
        certify(secret, OUTPUT, failure_probability=0.05, sampling="pairs")
    assert certify(secret, OUTPUT, failure_probability=0.05).squared < 0.1


def test_tables_with_nothing_to_see_and_with_everything():
    assert certify(
        SECRET, np.zeros(2000, dtype=int), failure_probability=0.05, loss="squared"
    ).squared == pytest.approx(8 * math.log(20) / 2000, rel=0.02)
    assert certify(SECRET, SECRET, failure_probability=0.05).advantage == 1
    assert certify([0, 1], [0, 0], failure_probability=0.05).advantage == 1  # two rows prove nothing


def test_slices_share_delta_and_a_slice_of_one_class_bounds_nothing():
    part = np.repeat(["a", "b", "c"], [1000, 900, 100])
    secret = np.where(part == "c", 1, SECRET)
    found = certify_slices(secret, OUTPUT, part, failure_probability=0.06)
    assert [found[name].failure_probability for name in "abc"] == pytest.approx([0.02] * 3)
    alone = certify(SECRET[:1000], OUTPUT[:1000], failure_probability=0.02)
    assert found["a"].squared == alone.squared
    assert "in slice 'a'" in found["a"].guarantee.adversary.scope
    assert found["c"].advantage == 1
    assert "nothing is bounded" in found["c"].guarantee.theorem_text
    assert (found["c"].positives, found["c"].negatives) == (100, 0)
    with pytest.raises(InputError, match="exactly two values"):
        certify_slices([0, 1, 0, 2], [1, 1, 1, 1], ["a", "a", "b", "b"], failure_probability=0.1)
    with pytest.raises(InputError, match="weights must be 2000 whole numbers"):
        certify_slices(SECRET, OUTPUT, part, failure_probability=0.1, weights=[1] * 5)
    weighted = certify_slices(SECRET, OUTPUT, SECRET * 0, failure_probability=0.02, weights=np.full(2000, 3))
    assert weighted[0].squared == certify(np.tile(SECRET, 3), np.tile(OUTPUT, 3), failure_probability=0.02).squared


def test_the_printed_network_certificate_prints_its_assumption():
    found = certify_network(
        0.995, positives=50000, negatives=50000, neurons=1000, barron=0.1, diameter=6.0, failure_probability=0.01
    )
    assert "reached the global minimum" in found.guarantee.assumed(checked_by="caller")[0]
    assert 0.88 < found.squared_loss < 0.9
    with pytest.raises(InputError, match="negatives must be about as many as positives, 10,"):
        certify_network(
            0.995, positives=10, negatives=10**7, neurons=1000, barron=0.1, diameter=6.0, failure_probability=0.01
        )


# The paper's closed-form mixture: T given S is Gaussian around Sμ, cut off at ±3


def mixture(rng, n, mu):
    secret = rng.integers(0, 2, n) * 2 - 1
    return secret, secret * stats.truncnorm.rvs(-3 - mu, 3 - mu, loc=mu, size=n, random_state=rng)


def least_loss(mu, noise=None):
    """Equation (50), and the same for the release with noise."""

    def density(t):
        return math.exp(-((t - mu) ** 2) / 2)

    whole = integrate.quad(density, -3, 3)[0]
    if noise is None:
        v = integrate.quad(lambda t: math.tanh(mu * t) ** 2 * (density(t) + density(-t)) / 2, -3, 3)[0] / whole
        return 1 - v
    t = np.linspace(-3, 3, 3001)
    weight = np.exp(-((t - mu) ** 2) / 2)
    y = np.linspace(-4, 4, 1601)
    kernels = np.exp(-((y[:, None] - t[None]) ** 2) / (2 * noise**2))
    one, zero = kernels @ (weight / weight.sum()), kernels @ (weight[::-1] / weight.sum())
    return 1 - float(((one - zero) ** 2 / (one + zero)).sum() / (one + zero).sum())


@pytest.mark.parametrize(
    ("mu", "expected"),
    [
        (0.01, {"C = 1": 0.9973, "C = mu": 0.99944, "monotone": 0.99922, "noise": 0.99929}),
        (0.1, {"C = 1": 0.9959, "C = mu": 0.99746, "monotone": 0.99715, "noise": 0.99763}),
    ],
)
def test_certificates_are_tight_on_the_papers_mixture(mu, expected):
    """Certificate ÷ least loss, mean of 6 runs: within 0.0008 of what 60 runs gave, five standard deviations of such a
    mean; above 1 in one run at most (the chance of two is below 2e-3 at δ = 0.01)."""
    n, runs, rng = 10**5, 6, np.random.default_rng(3)
    found = {name: [] for name in expected}
    for _ in range(runs):
        secret, output = mixture(rng, n, mu)
        for name, c in (("C = 1", 1.0), ("C = mu", mu)):
            width = (12 / (c * c * n)) ** (1 / 3)  # for a range of 6, known beforehand
            certificate = certify(secret, output, failure_probability=0.01, assume_max_slope=c, width=width)
            found[name].append(certificate.squared_loss / least_loss(mu))
        found["monotone"].append(
            certify(secret, output, failure_probability=0.01, method="monotone").squared_loss / least_loss(mu)
        )
        found["noise"].append(
            certify(secret, output, failure_probability=0.01, noise=0.1).squared_loss / least_loss(mu, 0.1)
        )
    for name, ratios in found.items():
        assert np.mean(ratios) == pytest.approx(expected[name], abs=8e-4), name
        assert np.mean(ratios) > 0.995
        assert sum(ratio > 1 for ratio in ratios) <= 1


# Around the certificate


def attack(certificate, low, value=None):
    return Attack(
        quantity=certificate.quantity("advantage"),
        value=low + 0.01 if value is None else value,
        low=low,
        high=low + 0.05,
        failure_probability=0.01,
        adversary=certificate.guarantee.adversary,
        method="threshold",
    )


def test_unless_told_otherwise_v_and_total_variation_are_certified_together():
    """One question, one answer: `certify`, `audit` and the command have the same defaults."""
    assert certify(SECRET, OUTPUT) == certify(SECRET, OUTPUT, failure_probability=0.05, loss="joint")
    assert certify(SECRET, OUTPUT / 4, assume_max_slope=0.1).loss == "squared"
    assert certify(SECRET, OUTPUT, form="printed", sampling="pairs").loss == "squared"


def test_an_audit_attacks_unless_told_otherwise():
    leaky = np.where(np.arange(2000) % 10 < 7, SECRET, OUTPUT)
    found = audit(SECRET, leaky)
    assert found.certificate == certify(SECRET, leaky)
    assert 0.5 < found.low < found.high
    tried = attempts(SECRET, leaky, certificate=found.certificate)
    assert [one.method.partition(" (")[0] for one in found.attacks] == [one.name for one in tried]
    assert found.failure_probability == pytest.approx(0.05 + 0.1 * 0.05)
    assert audit(SECRET[:50], leaky[:50]).attacks == ()  # too few rows to show anything
    assert audit(SECRET, leaky, attack_rows=0).attacks == ()
    with pytest.raises(InputError, match="attacks must be 'all' or a list of Attacks"):
        audit(SECRET, leaky, attacks="best")


def test_an_audit_is_an_interval_and_a_verdict():
    found = audit(SECRET, OUTPUT, name="the class", attacks=())
    assert (found.low, found.high, found.met, found.contradicted) == (0.0, found.certificate.advantage, True, False)
    assert found.verdict.startswith("The largest advantage of anyone who sees only the class lies between 0 and 0.05")
    both = [attack(found.certificate, 0.01), attack(found.certificate, 0.03)]
    found = audit(SECRET, OUTPUT, failure_probability=0.05, name="the class", attacks=both, require_advantage=0.2)
    assert (found.low, found.met) == (0.03, True)
    assert found.failure_probability == pytest.approx(0.07)
    assert found.verdict.startswith("Met: the largest advantage")
    assert (len(found.comparisons), found.comparison.attacks) == (1, tuple(both))


def test_verdicts_where_the_ceiling_is_not_kept():
    certificate = certify(SECRET, OUTPUT, failure_probability=0.05)
    unsure = Audit(certificate=certificate, require_advantage=0.01)
    assert not unsure.met
    assert "Not proven" in unsure.verdict
    assert (
        f"it takes {rows_needed(0.01, failure_probability=0.05, loss='zero-one', values=1)} rows or more"
        in unsure.verdict
    )
    broken = Audit(certificate=certificate, attacks=(attack(certificate, 0.03),), require_advantage=0.01)
    assert not broken.met
    assert broken.verdict.startswith("Broken: ")
    close = Audit(certificate=certificate, attacks=(), require_advantage=certificate.advantage * 0.99)
    assert close.verdict.endswith(("rows do not prove it: more rows may.", "even where nothing leaks."))


def test_verdicts_begin_with_what_no_table_can_show():
    network = certify_network(
        1.0, positives=10**7, negatives=10**7, neurons=10**6, barron=0.1, diameter=1.0, failure_probability=0.05
    )
    monotone = certify(SECRET, np.arange(2000) // 2 % 50, failure_probability=0.05, method="monotone")
    lipschitz = certify(SECRET, OUTPUT / 4, failure_probability=0.05, assume_max_slope=0.1)
    for certificate, condition in (
        (network, "If the network reached the global minimum over all networks of 1000000 neurons on this table and "),
        (monotone, "If the probability of the secret only grows, or only falls, with the output, "),
        (
            lipschitz,
            "If the secret's mean given the output, coded ±1 and with both values equally likely, changes by at most ",
        ),
    ):
        for ceiling, word in ((None, ", the largest advantage"), (0.5, ", met: "), (0.01, ", not proven: ")):
            verdict = Audit(certificate=certificate, require_advantage=ceiling).verdict
            assert verdict.startswith(condition)
            assert word in verdict
        # An attack that breaks the ceiling shows it by itself, and one beyond the certificate puts the blame there.
        broken = Audit(certificate=certificate, attacks=(attack(certificate, 0.0125),), require_advantage=0.01)
        assert broken.verdict.startswith("Broken: the largest advantage of anyone who sees only the output is 0.0125 ")
        beyond = Audit(certificate=certificate, attacks=(attack(certificate, 0.9),))
        assert f"most likely that {condition[3:20]}" in beyond.verdict


def test_where_noise_is_stated_a_contradiction_names_it():
    noisy = certify(SECRET, OUTPUT, failure_probability=0.05, noise=20.0)
    beyond = Audit(certificate=noisy, attacks=(attack(noisy, 0.9),))
    assert "most likely that the noise is fresh, and as strong as stated, or that rows are inde" in beyond.verdict


def test_an_attack_beyond_the_certificate_is_a_contradiction():
    """Every row fifty times over: they are not independent, and what is no leak looks like a proof of little."""
    certificate = certify(np.tile(SECRET, 50), np.tile(OUTPUT, 50), failure_probability=0.05)
    found = Audit(certificate=certificate, attacks=(attack(certificate, 0.3),), require_advantage=0.9)
    assert found.contradicted
    assert not found.met
    assert found.verdict.startswith("Contradicted: ")
    assert "independent" in found.verdict


def test_attacks_on_something_else_are_refused():
    certificate = certify(SECRET, OUTPUT, failure_probability=0.05)
    elsewhere = certify(SECRET, OUTPUT, failure_probability=0.05, name="the logits")
    with pytest.raises(IncomparableError):
        Audit(certificate=certificate, attacks=(attack(elsewhere, 0.1),))
    with pytest.raises(InputError, match="must be Attacks"):
        Audit(certificate=certificate, attacks=("threshold",))


def test_rows_needed_are_enough_and_no_more():
    needed = rows_needed(0.1, failure_probability=0.05)

    def certified(rows):
        return certify(
            np.arange(rows) % 2, np.arange(rows) // 2 % 2, failure_probability=0.05, loss="squared"
        ).advantage

    assert certified(4 * (needed // 4) + 4) <= 0.1
    assert certified(4 * (int(0.9 * needed) // 4)) > 0.1 * 0.99
    assert rows_needed(0.1, failure_probability=0.05, leaked=0.005) > needed
    assert rows_needed(0.1, failure_probability=0.05, loss="zero-one") < needed
    assert rows_needed(0.1, failure_probability=0.05, values=1000) > needed
    with pytest.raises(InputError, match="no number of rows"):
        rows_needed(0.1, failure_probability=0.05, leaked=0.02)


def test_rows_needed_do_about_every_second_time():
    """30 to 97 of 100 tables; simulated shares are between 0.47 and 0.85: either end has a chance below 1e-3."""
    for values, loss in ((2, "squared"), (10, "squared"), (10, "zero-one")):
        rows, rng = rows_needed(0.2, failure_probability=0.05, values=values, loss=loss), np.random.default_rng(1)
        secret = np.arange(rows) % 2
        certified = [
            certify(secret, rng.integers(0, values, rows), failure_probability=0.05, loss=loss).advantage <= 0.2
            for _ in range(100)
        ]
        assert 30 <= sum(certified) <= 97


@pytest.mark.parametrize("delta", [1e-6, 0.05, 0.5, 0.9])
@pytest.mark.parametrize("ceiling", [0.9, 0.5, 0.2, 0.07])
def test_fewer_rows_than_needed_certify_nothing(delta, ceiling):
    """The most favourable table, an output with one value, by every loss and sampling; pairs may be odd."""
    for loss, least in (("squared", "squared"), ("log", "squared"), ("zero-one", "zero-one"), ("joint", "zero-one")):
        needed = rows_needed(ceiling, failure_probability=delta, loss=least, values=1)
        for sampling, end in (("by class", needed), ("pairs", needed - 1)):
            for rows in range(max(2, needed - 5), end):
                found = certify(
                    np.arange(rows) % 2, np.zeros(rows), failure_probability=delta, loss=loss, sampling=sampling
                )
                assert found.advantage > ceiling


def test_privacy_curves_fall_and_are_read_between_their_points():
    tally = Tally().add(SECRET, OUTPUT)
    curve = privacy_curve(tally, failure_probability=0.05, epsilons=(0.0, 1.0, 2.0))
    values = curve.hockey_stick(np.linspace(0, 5, 51))
    assert (np.diff(values) <= 1e-12).all()
    assert values[0] == pytest.approx(curve.deltas[0])
    middle = float(curve.hockey_stick(0.5))
    ratio = (math.exp(0.5) - 1) / (math.e - 1)
    assert middle == pytest.approx((1 - ratio) * curve.deltas[0] + ratio * curve.deltas[1])
    found = curve.guarantee_of(0.5)
    assert found.value == middle
    assert found.failure_probability == 0.05
    assert found.references == ("theory.certificates.hockey_stick_limit",)
    assert found.adversary == certify(SECRET, OUTPUT).guarantee.adversary
    assert any("rows are independent" in text for text in found.assumed(checked_by="caller"))


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ({}, "the score"),
        ({"noise": 0.5}, "the score with Gaussian noise of standard deviation 0.5 on top of what the table holds"),
        ({"noise_added": 0.5, "rows": 2000}, "the score, which holds Gaussian noise of standard deviation 0.5"),
    ],
    ids=["as it is", "with noise to come", "with noise in it"],
)
def test_the_guarantee_of_a_privacy_curve_states_its_scope(kind, seen):
    """Who is bounded and what they see, and what is not promised: each single record, and people who see more."""
    output = OUTPUT + np.random.default_rng(1).normal(scale=0.5, size=len(SECRET)) if kind else OUTPUT
    curve = privacy_curve(Tally(**kind).add(SECRET, output), failure_probability=0.05, name="the score")
    found = curve.guarantee_of(1.0)
    assert found.adversary == Adversary.OUTPUT.scoped(seen)
    assert found.quantity.endswith(f"by {seen}")
    assert f"anyone who sees only {seen}" in str(found)
    told = " ".join(found.detail["scope"])
    assert "covers exactly this output, not people who also see the input" in told
    assert "about the average record: " in told
    assert "not differential privacy" in told
    assert Guarantee.from_json(found.to_json()).detail["scope"] == found.detail["scope"]


def test_what_differential_privacy_implies_stands_beside():
    implied = ImpliedByDP(epsilon=1.0, delta=1e-5)
    assert implied.advantage == pytest.approx(math.tanh(0.5), rel=1e-4)
    assert implied.balanced_accuracy == pytest.approx((1 + implied.advantage) / 2)
    assert implied.tpr_at(0.01) == pytest.approx(0.01 * math.e + 1e-5)
    assert implied.squared == pytest.approx(math.tanh(0.5) ** 2, rel=1e-4)
    assert implied.auc == pytest.approx((1 + math.tanh(0.5)) / 2, rel=1e-4)
    assert 0 < implied.bits < 1


def test_batches_certify_what_the_whole_table_does():
    output = RNG.normal(size=2000) + 0.2 * SECRET
    tally = Tally(noise=0.3)
    for cut in range(0, 2000, 300):
        tally.add(SECRET[cut : cut + 300], output[cut : cut + 300])
    whole = certify(SECRET, output, failure_probability=0.05, noise=0.3)
    assert certify_tally(tally, failure_probability=0.05) == whole


def test_either_secret_may_be_called_positive():
    rng = np.random.default_rng(3)
    told = rng.integers(0, 2, 3000)
    secret = np.array(["no", "yes"])[told]
    output = np.where((told == 0) & (rng.random(3000) < 0.3), 1, 0)
    usual = certify(secret, output, failure_probability=0.05, loss="joint")
    turned = certify(secret, output, failure_probability=0.05, loss="joint", positive="no")
    assert (usual.positive, turned.positive, turned.negative) == ("yes", "no", "yes")
    assert (turned.positives, turned.negatives) == (usual.negatives, usual.positives)
    assert (turned.squared, turned.information, turned.variation) == (
        usual.squared,
        usual.information,
        usual.variation,
    )
    assert turned.quantity("advantage").startswith("advantage (TPR − FPR) in telling 'no' from 'yes'")
    parts = np.where(np.arange(3000) < 1500, "a", "b")
    parts[told == 0] = "a"  # b has one class alone
    for one in certify_slices(secret, output, parts, failure_probability=0.05, positive="no").values():
        assert one.positive == "no"
    with pytest.raises(InputError, match=r"positive must be one of the secrets, \['no', 'yes'\], got 'maybe'"):
        certify(secret, output, failure_probability=0.05, positive="maybe")


def test_a_lipschitz_posterior_is_that_of_a_fair_secret():
    """With 1 % of one class the posterior of the table moves 50 times less than that of a fair coin, which counts."""
    outputs = np.concatenate([np.full(200, 0.02), np.tile([0.0, 0.02], 9900)])
    secrets = np.repeat([1, 0], [200, 19_800])
    rare = certify(secrets, outputs, failure_probability=0.05, assume_max_slope=2.0)
    assert rare.advantage < 0.5, "the slope of the table's own posterior is no such constant"
    assert "with both values equally likely" in rare.condition
    fair = (1 + 1 / 3) / 0.02  # from −1 to ⅓
    assert certify(secrets, outputs, failure_probability=0.05, assume_max_slope=fair).advantage >= 0.5
