"""Plans: fixed points against a scan, promises against runs with the worst votes allowed, and plain verdicts."""

import itertools
import json
import math

import numpy as np
import pytest
from noises import SeededNoise

from tacit import InputError
from tacit.learning import AdaptiveVector, ConfidentGNMax, Confirm, Gate, GNMax, SparseVector, StableRelease
from tacit.learning.choice import choice
from tacit.learning.mechanisms import gate_design, gnmax
from tacit.learning.mechanisms.cases import margins
from tacit.learning.mechanisms.registry import KINDS
from tacit.learning.planning import MECHANISMS, Plan, plan
from tacit.learning.study.plan import report
from tacit.theory import accounting, learnability

BUDGET = {"epsilon": 2.0, "delta": 1e-5}
MANY = gnmax._QUICK + 1
"""Queries for whose winners no noise is searched for, where a test is about other rows."""


def mechanism(row, made):
    """What a row describes, as it would be run."""
    budget = {"epsilon": made.epsilon, "delta": made.delta}
    if row.mechanism == "svt":
        return SparseVector(**budget, refusals=row.refusals, queries=made.queries)
    if row.mechanism == "svt-faithful":
        return SparseVector(**budget, refusals=row.refusals, queries=made.queries, variant="faithful")
    if row.mechanism == "stable":
        return StableRelease(**budget, queries=made.queries)
    if row.mechanism == "gnmax":
        return GNMax(**budget, queries=made.queries)
    if row.mechanism == "gnmax-winners":
        return GNMax(**budget, queries=made.queries, classes=made.classes)
    if row.mechanism in ("gate", "confirm"):
        return (Gate if row.mechanism == "gate" else Confirm)(**budget, refusals=row.refusals)
    return ConfidentGNMax(**budget, queries=made.queries, answers=made.queries, threshold=row.threshold)


PROMISING = [name for name in MECHANISMS if name != "svt-adaptive"]


@pytest.fixture(scope="module")
def rich():
    """A plan in which every mechanism promises something that can."""
    return plan(3_000_000, 200, epsilon=4.0, delta=1e-5, error=0.01, classes=2, public_model_error=0.05)


def test_a_rich_budget_is_feasible_for_all(rich):
    assert [row.mechanism for row in rich.rows] == list(MECHANISMS)
    assert rich.feasible
    for row in rich.rows:
        assert row.feasible == (row.mechanism in PROMISING)
        if not row.feasible:
            continue
        assert row.verdict.startswith("Feasible: ")
        assert row.verdict.count(".") == 1 + row.verdict.count("0.0")  # one sentence
        assert row.answers_lower == pytest.approx(200 * (1 - row.misclassified_upper))
        assert not row.estimated
        if row.mechanism in ("gate", "confirm", "gnmax-winners"):
            assert row.delta_spent is None  # a certificate takes longer than a plan may
        else:
            assert row.delta_spent <= 1e-5
    assert rich.best is not None
    assert rich.best.misclassified_upper == min(row.misclassified_upper for row in rich.rows)


def test_the_rows_hold_the_constants_of_the_mechanisms(rich):
    for row in map(rich.row, PROMISING):
        built = mechanism(row, rich)
        assert built.guarantee.value == 4.0
        if row.mechanism in ("gate", "confirm"):
            found = built.distance if row.mechanism == "gate" else built.lead
            assert row.votes_to_flip == found(chance=0.0125 / 200)
            assert row.noise == 1 / built.design.step
            continue
        own = built.sigma if "gnmax" in row.mechanism else built.scale
        assert own <= row.noise <= 1.001 * own
        if row.mechanism in ("svt", "svt-faithful", "stable"):
            assert row.threshold == built.threshold


@pytest.mark.parametrize("name", PROMISING)
def test_promises_are_kept_on_the_worst_votes_allowed(rich, name):
    """Each of 60 runs fails with probability 0.05 at most (really far less); 13 failures have a chance below 1e-5."""
    row, noise, generator = rich.row(name), SeededNoise(7), np.random.default_rng(3)
    k, m = row.teachers, rich.queries
    outvoted = learnability.tolerated_votes(k, distance=row.votes_to_flip)
    hard = m - row.answers_lower
    failures, built = 0, mechanism(row, rich)
    for _ in range(60):
        session, right = built.session(noise), 0
        doubtful = set(generator.choice(m, size=hard, replace=False).tolist())
        for query in range(m):
            if session.stopped:
                break
            wrong = k // 2 if query in doubtful else outvoted
            right += query not in doubtful and session.answer([k - wrong, wrong]) == 0
            if query in doubtful:
                session.answer([k - wrong, wrong])
        failures += right < m - hard
    assert failures < 13


@pytest.mark.parametrize("epsilon", [0.25, 1.9, 8.0])
def test_without_a_stored_table_a_row_is_an_estimate_and_says_so(epsilon):
    made = plan(10**7, 100, epsilon=epsilon, delta=1e-5, error=0.002, classes=2, public_model_error=0.01)
    for name in ("gate", "confirm"):
        row = made.row(name)
        assert row.estimated
        assert not row.feasible
        assert (row.answers_lower, row.misclassified_upper, row.delta_spent) == (0, 1.0, None)
        assert row.verdict.startswith("An estimate, no promise: about ")
        assert made.best is not row


def test_winners_are_planned_as_far_as_they_are_charged_for():
    """Of many classes, or of many queries, the noise is about that which is found when they are asked."""
    few = plan(10**6, 4, **BUDGET, error=0.002, classes=3).row("gnmax-winners")
    assert few.estimated
    assert "Its noise is searched for, within a minute" in few.verdict
    assert GNMax(**BUDGET, queries=4, classes=3).sigma == pytest.approx(few.noise, rel=0.03)
    many = plan(10**6, 501, **BUDGET, error=0.002, classes=2).row("gnmax-winners")
    assert many.estimated
    assert GNMax(**BUDGET, queries=501, classes=2).sigma == pytest.approx(many.noise, rel=0.01)
    too_many = plan(10**6, 2001, **BUDGET, error=0.002).row("gnmax-winners")
    assert too_many.verdict.startswith("Hopeless: winners are charged for up to 2000 queries; fewer queries")
    assert (too_many.teachers_needed, too_many.expected_answers) == (None, None)
    noisy = plan(10**6, 2000, epsilon=0.5, delta=1e-5, error=0.002, classes=3).row("gnmax-winners")
    assert "winners of more than two classes are charged for up to a noise of 150" in noisy.verdict


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize(("epsilon", "refusals"), [(0.5, 100), (1.0, 5), (2.0, 20), (4.0, 1)])
def test_estimates_are_near_the_tables_that_are_stored(labels, epsilon, refusals):
    built = (Gate if labels else Confirm)(epsilon=epsilon, delta=1e-5, refusals=refusals)
    step = gate_design.likely_step(epsilon, 1e-5, refusals=refusals)
    for chance in (0.01, 1e-5):
        truth = built.distance(chance=chance) if labels else built.lead(chance=chance)
        found = gate_design.likely_distance(chance, step=step, labels=labels)
        assert found == pytest.approx(truth, rel=0.1, abs=1)


def test_budgets_that_no_table_is_searched_for_have_no_row_for_the_gate():
    names = [row.mechanism for row in plan(10**6, 100, epsilon=60.0, delta=1e-5, error=0.1).rows]
    assert names == [name for name in MECHANISMS if name not in ("gate", "confirm")]
    made = plan(10**6, 100, **BUDGET, error=0.1)
    with pytest.raises(InputError, match="confirm needs public_model_error"):
        made.row("confirm")
    assert made.teachers_needed("gate", epsilon=60.0) is None
    wild = plan(10**6, 10**6, epsilon=1.0, delta=1e-5, failure_probability=1e-11, error=0.0).row("gate")
    assert "no table refuses as rarely as a failure probability of 1e-11" in wild.verdict


def test_the_circle_is_closed_at_its_least_point():
    """T refusals are enough for the queries that T refusals leave in doubt; T − 1 are not, for the same teachers."""
    made = plan(10**6, MANY, **BUDGET, error=0.005, teachers=4000)
    row = made.row("svt")
    assert row.feasible
    share = made.failure_probability / 4

    def enough(refusals):
        mechanism = SparseVector(epsilon=2.0, delta=1e-5, refusals=refusals)
        distance = mechanism.distance(queries=MANY, failure_probability=share)
        outvoted = learnability.tolerated_votes(4000, distance=distance)
        hard = learnability.hard_queries(
            0.005, teachers=4000, outvoted=outvoted, queries=MANY, failure_probability=share
        )
        return refusals >= hard + 1

    assert enough(row.refusals)
    assert not any(enough(refusals) for refusals in range(1, row.refusals))


@pytest.mark.parametrize("learner", [{"error": 0.002}, {"vc_dimension": 3}, {"error": {10: 0.02, 1000: 0.002}}])
@pytest.mark.parametrize("name", ["svt", "gnmax", "svt-faithful"])
def test_the_teachers_needed_are_a_fixed_point(learner, name):
    made = plan(10**9, 100, **BUDGET, **learner)
    row = made.row(name)
    assert row.teachers == row.teachers_needed
    assert row.feasible
    again = plan(10**9, 100, **BUDGET, **learner, teachers=row.teachers).row(name)
    assert (again.refusals, again.votes_to_flip, again.answers_lower) == (
        row.refusals,
        row.votes_to_flip,
        row.answers_lower,
    )
    if name == "svt":
        third = row.teachers // 3
        assert learnability.tolerated_votes(row.teachers, distance=row.votes_to_flip) >= third


def test_the_faithful_row_has_the_printed_numbers():
    row = plan(10**9, 1000, **BUDGET, error=0.05).row("svt-faithful")
    assert row.refusals == learnability.printed_refusals(0.05, queries=1000, failure_probability=0.05)
    assert row.noise == accounting.printed_scale(2.0, 1e-5, refusals=row.refusals)
    assert row.threshold == accounting.printed_threshold(1e-5, scale=row.noise, queries=1000)
    assert row.teachers == accounting.printed_teachers(
        1e-5, scale=row.noise, refusals=row.refusals, queries=1000, failure_probability=0.05
    )
    assert row.feasible


def test_a_hopeless_budget_says_so_and_what_helps():
    made = plan(2000, 1000, epsilon=0.1, delta=1e-6, error=0.1)
    assert not made.feasible
    assert made.best is None
    for row in made.rows:
        anew = row.mechanism == "svt-adaptive"
        assert row.verdict.startswith("No promise" if anew else "Hopeless")
        assert ("would help" in row.verdict) != anew
        assert not row.estimated
        assert (row.answers_lower, row.misclassified_upper) == (0, 1.0)


def test_what_is_said_to_help_does_help():
    made = plan(60_000, 1000, **BUDGET, error=0.05, classes=10, teachers=250)
    verdict = made.row("gnmax").verdict
    assert "more teachers (e.g. 1723), fewer queries (e.g. 125) or a larger epsilon (e.g. 8) would help" in verdict
    assert plan(60_000, 125, **BUDGET, error=0.05, classes=10, teachers=250).row("gnmax").feasible
    assert plan(60_000, 1000, epsilon=8.0, delta=1e-5, error=0.05, classes=10, teachers=250).row("gnmax").feasible
    assert plan(60_000, 1000, **BUDGET, error=0.05, classes=10, teachers=1723).row("gnmax").feasible


def test_perfect_teachers_make_sparse_vector_nearly_free():
    made = plan(60_000, 1000, **BUDGET)
    assert made.best is not None
    assert (made.best.mechanism, made.best.refusals, made.best.answers_lower) == ("svt", 1, 1000)
    assert made.best.teachers < 300
    assert "if they are always right" in made.best.verdict
    assert made.best.expected_answers is None


def test_more_never_hurts():
    """More ε, fewer queries, more records or a smaller error: no fewer promises."""

    def lost(**changes):
        inputs = {"records": 400_000, "queries": MANY, "epsilon": 2.0, "delta": 1e-5, "vc_dimension": 2, **changes}
        made = plan(inputs.pop("records"), inputs.pop("queries"), **inputs)
        return [made.row(name).misclassified_upper for name in ("svt", "gnmax")]

    for name, values in {
        "epsilon": (1.0, 2.0, 4.0, 8.0),
        "records": (10**6, 10**7, 10**8),
    }.items():
        rows = [lost(**{name: value}) for value in values]
        assert all(a >= b for before, after in itertools.pairwise(rows) for a, b in zip(before, after, strict=True))


def test_a_learning_curve_is_a_staircase():
    curve = {240: 0.035, 60: 0.08}
    made = plan(60_000, 50, epsilon=8.0, delta=1e-5, error=curve, classes=10)
    for row in made.rows:
        assert row.records_per_teacher >= 60
        assert row.error == (0.035 if row.records_per_teacher >= 240 else 0.08)


def test_the_vote_model_is_simulated():
    """GNMax's expected right answers against 20 000 drawn queries; ±0.015 is beyond four standard deviations."""
    made = plan(60_000, 1000, **BUDGET, error=0.1, teachers=400)
    row, generator = made.row("gnmax"), np.random.default_rng(5)
    wrong = np.rint(400 * generator.beta(0.1, 0.9, size=20_000))
    noisy = 400 - 2 * wrong + generator.normal(0, math.sqrt(2) * row.noise, size=20_000)
    assert row.expected_misclassified == pytest.approx(float((noisy < 0).mean()), abs=0.015)


@pytest.mark.parametrize("error", [0.05, 0.2])
@pytest.mark.parametrize("name", ["svt", "svt-adaptive", "svt-faithful", "stable", "gnmax", "gate"])
def test_a_plan_and_the_choice_of_a_mechanism_expect_the_same(name, error):
    """The same answers from the same constants; the choice counts the winner as right, the plan the truth."""
    made = plan(60_000, 300, epsilon=4.0, delta=1e-5, error=error, teachers=500, classes=4)
    planned = made.row(name)
    wanted = {"epsilon": 4.0, "delta": 1e-5, "teachers": 500, "points": 300, "queries": 300, "classes": 4}
    lead = margins(1 - error)
    chosen = choice(name, lead=lead, refusals=planned.refusals, **wanted)
    assert chosen.expected_answers == pytest.approx(planned.expected_answers, rel=1e-3)
    right = 300 * (1 - planned.expected_misclassified)
    assert right < chosen.expected_right <= chosen.expected_answers


def test_of_equal_constants_the_choice_takes_what_a_plan_prefers():
    for epsilon, error in itertools.product((0.5, 2.0, 20.0), (0.02, 0.2)):
        made = plan(60_000, MANY, epsilon=epsilon, delta=1e-5, error=error, teachers=400)
        wanted = {"epsilon": epsilon, "delta": 1e-5, "teachers": 400, "points": MANY, "queries": MANY}
        lead = margins(1 - error)
        worth = {name: choice(name, lead=lead, **wanted).expected_right for name in ("svt", "gnmax")}
        planned = {name: 1 - made.row(name).expected_misclassified for name in worth}
        if abs(worth["svt"] - worth["gnmax"]) > MANY / 10:
            assert max(worth, key=worth.get) == max(planned, key=planned.get)


def test_a_plan_of_a_class_bounds_the_student():
    made = plan(10**8, 5000, **BUDGET, vc_dimension=3)
    row = made.row("gnmax")
    assert row.student_error_upper == learnability.student_error(
        5000, wrong_labels=5000 - row.answers_lower, vc_dimension=3, failure_probability=0.0125
    )
    assert row.expected_answers is None


def test_plans_and_fits_know_the_same_mechanisms(rich):
    assert sorted(MECHANISMS) == sorted(KINDS)
    assert all(kind.name == name for name, kind in KINDS.items())
    for what, options in {"row": {}, "teachers_needed": {"epsilon": 4.0}, "expected_right": {"teachers": 100}}.items():
        ask = getattr(rich, what)
        with pytest.warns(DeprecationWarning, match="say 'stable'") as caught:
            found = ask("composition", **options)  # what plans called it
        assert found == ask("stable", **options), what
        assert [warning.filename for warning in caught] == [__file__]
    with pytest.raises(InputError, match="must be one of"):
        choice("composition", lead=margins(0.9), **BUDGET, teachers=100, points=50, queries=None)


def test_plans_travel_as_json(rich):
    written = json.loads(json.dumps(rich.to_dict(), allow_nan=False))
    assert written["schema"] == 2
    assert [row["mechanism"] for row in written["rows"]] == list(MECHANISMS)
    curve = plan(1000, 10, **BUDGET, error={10: 0.1}).to_dict()["error"]
    assert curve == {"10": 0.1}
    assert isinstance(rich, Plan)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"error": 0.1, "vc_dimension": 3}, "must be left out where `error` is given"),
        ({"vc_dimension": 3, "classes": 3}, "must go with two classes"),
        ({"best_error": 0.1}, "must go with `vc_dimension`"),
        ({"teachers": 2000}, "must not exceed `records` = 1000"),
        ({"classes": 2000}, "must not exceed `records`"),
        ({"error": {}}, "must not be empty"),
        ({"public_model_error": 1.0}, "public_model_error must be a finite number"),
    ],
)
def test_contradictory_inputs_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        plan(1000, 10, **BUDGET, **changes)


def test_the_old_name_of_the_failure_probability_warns():
    with pytest.warns(DeprecationWarning, match="use failure_probability"):
        old = plan(1000, 10, **BUDGET, error=0.1, beta=0.01)
    assert old == plan(1000, 10, **BUDGET, error=0.1, failure_probability=0.01)
    with pytest.warns(DeprecationWarning, match="use failure_probability"):
        assert old.beta == 0.01
    assert "beta" not in old.to_dict()
    assert old.to_dict()["failure_probability"] == 0.01


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"error": 0.6}, ["Use a learner that errs less"]),
        ({"error": 0.4}, ["Learn without a promise"]),
        ({"epsilon": 0.4}, ["Learn without a promise", "Ask fewer queries", "A larger ε", "Bring more records"]),
        ({"epsilon": 0.4, "teachers": 200}, ["Learn without a promise", "A larger ε"]),
    ],
)
def test_what_to_change_is_what_the_verdicts_say(changed, words):
    inputs = {"epsilon": 1.0, "delta": 1e-5, "error": 0.05, **changed}
    made = plan(6000, 300, **inputs)
    assert not made.feasible
    found = report(6000, 300, **inputs | {"error": [str(inputs["error"])]})
    assert [change.what.partition(":")[0] for change in found.changes] == words
    for name, value in made.helping("gnmax").items():
        assert f"(e.g. {value:g})" in made.row("gnmax").verdict
        assert plan(**{"records": 6000, "queries": 300, **inputs, name: value}).row("gnmax").feasible
    assert bool(made.helping("gnmax")) == ("a better learner" not in made.row("gnmax").verdict)


def test_the_best_promise_is_not_that_of_teachers_with_three_records():
    """At this budget sparse vector promises one answer more than noisy counts, from half as many teachers again."""
    made = plan(60_000, 1000, epsilon=1.0, delta=1e-10, error=0.05)
    most = min((row for row in made.rows if row.feasible), key=lambda row: row.misclassified_upper)
    assert most.records_per_teacher < 10 <= made.best.records_per_teacher
    assert made.best.answers_lower > 0.99 * most.answers_lower


def test_noise_chosen_anew_promises_nothing_and_says_what_is_expected():
    made = plan(60_000, 300, epsilon=4.0, delta=1e-5, error=0.05, classes=4)
    row = made.row("svt-adaptive")
    assert not row.feasible
    assert not row.estimated
    assert row.theorem == ()
    assert made.teachers_needed("svt-adaptive", epsilon=100.0) is None
    assert made.helping("svt-adaptive") == {}
    expected = 300 * (1 - row.expected_misclassified)
    assert expected > 200
    assert row.verdict == (
        "No promise: its noise follows its answers, which nobody knows beforehand, though the model of votes expects "
        f"{expected:.0f} of 300 right answers."
    )
    known = AdaptiveVector(epsilon=4.0, delta=1e-5, queries=300, teachers=row.teachers)
    assert (row.noise, row.threshold) == known.begins
    blind = plan(60_000, 300, epsilon=4.0, delta=1e-5).row("svt-adaptive")
    assert blind.verdict == "No promise: its noise follows its answers, which nobody knows beforehand."


def test_a_table_says_hopeless_where_nothing_is_expected_either():
    def verdicts(error):
        (table,) = report(4000, 600, epsilon=2.0, delta=1e-5, error=[str(error)], classes=4).tables
        return {row[0]: row[-1] for row in table.rows}

    here = verdicts(0.03)
    assert {here[name] for name in ("svt", "svt-adaptive", "gnmax")} == {"no promise"}
    assert {here[name] for name in ("svt-faithful", "stable")} == {"hopeless"}
    there = verdicts(0.45)
    assert there["gnmax"] == "hopeless"
    assert there["svt-adaptive"] == "no promise"
