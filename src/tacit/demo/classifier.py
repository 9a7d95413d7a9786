"""Part 2: a classifier that may be published."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .. import learning
from ..core.errors import PrivacyWarning
from ..core.guarantee import Comparison
from ..core.wording import safe_text
from ..learning.study.publication import promise_verdict
from ..report import Chapter, Figure, Table, figures
from ..report.wording import percent
from ..theory.confidence import binomial_lower, binomial_upper
from .digits import PRIVATE, UNLABELLED, Digits

EPSILON, DELTA = 2.0, 1e-6
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
TEACHERS, QUERIES = 150, 20
GAMES = 5000  # of the attack on the answers


def _mechanism(epsilon: float) -> learning.GNMax:
    return learning.GNMax(epsilon=epsilon, delta=DELTA, queries=QUERIES, counts=True)


def _private_classifier(epsilon: float) -> learning.PrivateClassifier:
    """Teachers and student are nearest-neighbour classifiers: any learner works, differentiable or not."""
    from sklearn.neighbors import KNeighborsClassifier

    return learning.PrivateClassifier(
        KNeighborsClassifier(1),
        epsilon=epsilon,
        delta=DELTA,
        n_teachers=TEACHERS,
        mechanism=_mechanism(epsilon),
        student=learning.Propagated(KNeighborsClassifier(5)),
        classes=range(10),
    )


def part(digits: Digits, advance: Callable[[str], None]) -> tuple[Chapter, Any, dict[str, Any]]:
    """Return the chapter, the published classifier, and the chapter's numbers."""
    from sklearn.neighbors import KNeighborsClassifier

    advance("part 2, classifier: teachers vote, a student learns")
    mechanism, model = _mechanism(EPSILON), _private_classifier(EPSILON)
    with warnings.catch_warnings():
        # These digits are nobody's secret, whoever fitted on them before.
        warnings.simplefilter("ignore", PrivacyWarning)
        model.fit(*digits.private, digits.public[0])
    student = model.published()
    right = int(np.sum(student.predict(digits.test[0]) == digits.test[1]))
    trials = len(digits.test[1])
    low, high = (limit(right, trials=trials, failure_probability=0.025) for limit in (binomial_lower, binomial_upper))
    plain = float(KNeighborsClassifier(5).fit(*digits.private).score(*digits.test))
    advance("part 2, classifier: an attack on the answers")
    attack = learning.distinguishing_attack(mechanism, runs=GAMES, failure_probability=1e-6)
    advance("part 2, classifier: more and less budget")
    with warnings.catch_warnings():
        # Each budget is a release of its own here: nobody gets all of them, and the page says so.
        warnings.simplefilter("ignore", PrivacyWarning)
        scores = [
            right / trials
            if epsilon == EPSILON
            else float(_private_classifier(epsilon).fit(*digits.private, digits.public[0]).score(*digits.test))
            for epsilon in EPSILONS
        ]
    sigma = mechanism.sigma
    ordered = np.sort(np.asarray(model.noisy_counts_)[model.answered_], axis=1)
    true = np.sort(model.teachers_.counts(digits.public[0][model.answered_]), axis=1)
    leads = {
        "true votes, which stay private": (true[:, -1] - true[:, -2]) / TEACHERS,
        "noisy counts, which are released": (ordered[:, -1] - ordered[:, -2]) / TEACHERS,
    }
    factor = safe_text(float(np.exp(EPSILON)), toward="up")
    chapter = Chapter(
        title="A classifier learned from private records",
        verdict=replace(
            promise_verdict(model.guarantee_), about="A classifier learned from private records: one record"
        ),
        released=f"A nearest-neighbour classifier. {TEACHERS} teachers, each trained on about {PRIVATE // TEACHERS} "
        f"private digits, voted on {QUERIES} of {UNLABELLED} public images; it learned from their noisy counts. It "
        f"reads {percent(right / trials)} of the test digits ({percent(plain)} without privacy).",
        nobody="Whether a given digit was among the private ones: any conclusion has at most "
        f"{factor} times the probability that it would have without this digit (ε = {EPSILON:g}), plus "
        f"δ = {DELTA:g}.",
        attacker="An attacker who knows all records but one, and all votes, shows a privacy loss of at least "
        f"{safe_text(attack.low, toward='down')} from {2 * GAMES} answers.",
        change="Bring ten times as many records: the same noise then matters a tenth as much. Or a larger ε; its price "
        "is weaker privacy.",
        comparisons=(Comparison(guarantee=model.guarantee_, attacks=(attack,)),),
        tables=(
            Table(
                title="The budget and what it bought",
                columns=("what", "value"),
                rows=(
                    ("privacy loss ε of everything released", f"{EPSILON:g}"),
                    ("its δ", f"{DELTA:g}"),
                    ("accuracy, except with probability 0.05", f"{percent(low)} to {percent(high)}"),
                    ("answers, all covered by it", f"{len(model.answered_)}"),
                    ("noise in every count", f"{sigma:.1f} votes of {TEACHERS}"),
                    ("left for another release", "nothing"),
                ),
                note="Another run on the same records would be another release, with a cost of its own.",
            ),
        ),
        opening=(
            Figure(
                title="Accuracy against budget",
                caption="Each dot is a release of its own, with fresh noise, and would cost its own ε.",
                alternative="Accuracy on test digits: "
                + "; ".join(f"{percent(score)} at ε = {e:g}" for e, score in zip(EPSILONS, scores, strict=True)),
                svg=figures.curves(
                    EPSILONS,
                    {"test digits read correctly": (scores, figures.USEFUL)},
                    x_label="privacy loss ε",
                    y_label="accuracy",
                    marked=(EPSILON, "this release"),
                ),
            ),
        ),
        figures=(
            Figure(
                title="Margins, before and after the noise",
                caption="The lead of the winning digit on each query, as a share of all teachers. Leads larger than "
                "the noise (dashed) survive it. True votes are shown only because these digits are public.",
                alternative=f"Two histograms of leads, with noise of {percent(sigma / TEACHERS)} of the votes marked: "
                + ", ".join(f"{name} have a median of {percent(float(np.median(x)))}" for name, x in leads.items()),
                svg=figures.leads(leads, sigma / TEACHERS),
            ),
        ),
    )
    return (
        chapter,
        student,
        {
            "epsilon": EPSILON,
            "delta": DELTA,
            "teachers": TEACHERS,
            "answers": len(model.answered_),
            "sigma_votes": sigma,
            "accuracy": {"value": right / trials, "low": low, "high": high, "records": trials},
            "accuracy_without_privacy": plain,
            "epsilons": EPSILONS,
            "accuracies": scores,
            "leads": {name: values.tolist() for name, values in leads.items()},
        },
    )
