"""Part 2: a classifier that may be published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import learning
from ..core.guarantee import Comparison
from ..core.wording import chance_text, safe_text
from ..report import Chapter, Figure, Table, figures
from ..theory.confidence import binomial_lower, binomial_upper
from .digits import PRIVATE, UNLABELLED, Digits
from .wording import percent

EPSILON, DELTA = 2.0, 1e-6
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
TEACHERS, QUERIES = 150, 20
GAMES = 5000  # of the attack on the answers, with a record and without it


def _mechanism(epsilon: float) -> learning.GNMax:
    return learning.GNMax(epsilon=epsilon, delta=DELTA, queries=QUERIES, counts=True)


def _private_classifier(epsilon: float) -> learning.PrivateClassifier:
    """Teachers and student are nearest neighbours: any learner will do, differentiable or not."""
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
    """The chapter, the classifier that is published, and the chapter's numbers."""
    from sklearn.neighbors import KNeighborsClassifier

    advance("part 2, classifier: teachers vote, a student learns")
    mechanism, model = _mechanism(EPSILON), _private_classifier(EPSILON)
    model.fit(*digits.private, digits.public[0])
    student = model.published()
    right = int(np.sum(student.predict(digits.test[0]) == digits.test[1]))
    trials = len(digits.test[1])
    low, high = (limit(right, trials=trials, failure_probability=0.025) for limit in (binomial_lower, binomial_upper))
    plain = float(KNeighborsClassifier(5).fit(*digits.private).score(*digits.test))
    advance("part 2, classifier: an attack on the answers")
    half = 10 * TEACHERS  # far from where a count could fall below 0
    game = learning.Game(
        name="winners that differ",
        left=[(half + 1, half)] * QUERIES,
        right=[(half, half + 1)] * QUERIES,
    )
    attack = learning.distinguishing_attack(
        mechanism, runs=GAMES, length=QUERIES, failure_probability=0.01, tried=[game]
    )
    advance("part 2, classifier: more and less budget")
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
        released=f"A nearest-neighbour classifier that has never seen a private record. {TEACHERS} teachers, each "
        f"trained on about {PRIVATE // TEACHERS} private digits, voted on {QUERIES} public images; the counts were "
        f"released with exact discrete Gaussian noise of {sigma:.1f} votes, and the classifier learned from them and "
        f"from {UNLABELLED} unlabelled public images. It reads {percent(right / trials)} of the test digits "
        f"({percent(low)} to {percent(high)} with 95 % confidence; {percent(plain)} without privacy).",
        nobody="Whether a given digit was among the private ones: every conclusion that anyone draws has at "
        f"most {factor} times the probability that it would have otherwise (ε = {EPSILON:g}), plus δ = {DELTA:g}, "
        "whatever they know and however often they use the classifier.",
        attacker=f"An attacker who knows all records but one, and all votes, and plays {QUERIES} queries "
        f"{2 * GAMES} times, shows a privacy loss of {attack.value:.2g}, and "
        f"at least {safe_text(attack.low, toward='down')} {chance_text(attack.failure_probability)}. The rest of ε "
        "lies in events too rare to be seen in so few games.",
        change="Get more records: ten times as many make ten times as many teachers, among whom the same noise counts "
        "a tenth. A larger ε buys accuracy and sells the promise; choose it before you look at the records, with "
        "tacit plan.",
        comparisons=(Comparison(guarantee=model.guarantee_, attacks=(attack,)),),
        tables=(
            Table(
                title="The budget, and what it bought",
                columns=("what", "value"),
                rows=(
                    ("privacy loss ε of everything released", f"{EPSILON:g}"),
                    ("δ that belongs to it", f"{DELTA:g}"),
                    ("answers, all paid from it together", f"{len(model.answered_)}"),
                    ("noise in every count", f"{sigma:.1f} votes of {TEACHERS}"),
                    ("left for another release", "none"),
                ),
                note="Another run on the same records would be another release, with a cost of its own.",
            ),
        ),
        figures=(
            Figure(
                title="Margins, before and after the noise",
                caption="By how much the winning digit led, as a share of all teachers, on each query. Leads beyond "
                "the noise (dashed) survive it. True votes are shown only because these digits are public.",
                alternative=f"Two histograms of leads, with noise of {percent(sigma / TEACHERS)} of the votes marked: "
                + ", ".join(f"{name} have a median of {percent(float(np.median(x)))}" for name, x in leads.items()),
                svg=figures.leads(leads, sigma / TEACHERS),
            ),
            Figure(
                title="Accuracy against budget",
                caption="Each dot is a release of its own, with fresh noise, and would cost its own ε on private "
                "records. Repeat the demo, and the dots move: so much do 20 noisy answers vary.",
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
