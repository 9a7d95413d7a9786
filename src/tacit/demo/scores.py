"""Part 3: an audit of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import audit
from ..audit.study.report import advantage_verdict
from ..core.wording import safe_text
from ..report import Chapter, Figure, Table, figures
from ..report.wording import percent
from .digits import PRIVATE, Digits
from .wording import up

_Array = NDArray[np.float64]

ROWS = 20_000  # draws of members, and of others
CERTIFIED = 0.05  # the chance that a certificate fails


@dataclass(frozen=True, kw_only=True)
class _Audited:
    """An audit of one model's confidence; the best attack comes first."""

    secret: NDArray[Any]
    output: _Array
    certificate: audit.Certificate
    tried: tuple[audit.Attempt, ...]

    @property
    def audit(self) -> audit.Audit:
        return audit.Audit(certificate=self.certificate, attacks=self.tried)


def _audited(model: Any, name: str, digits: Digits, seed: int) -> _Audited:
    table = audit.membership(model, digits.private, digits.others, draws=ROWS, seed=seed)
    output = np.round(table.scores["confidence"], 1)  # what is released; few values are easy to certify
    secret = np.where(table.member, "training record", "another record")
    certificate = audit.certify(secret, output, failure_probability=CERTIFIED, loss="joint", name=name)
    tried = audit.attempts(
        secret, output, certificate=certificate, learners=("threshold", "histogram", "boosting"), seed=seed
    )
    return _Audited(secret=secret, output=output, certificate=certificate, tried=tried)


def part(digits: Digits, student: Any, seed: int, advance: Callable[[str], None]) -> tuple[Chapter, dict[str, Any]]:
    """Return the chapter and its numbers; `student` is the classifier of part 2."""
    from sklearn.ensemble import RandomForestClassifier

    advance("part 3, scores: training a forest that knows its records by heart")
    forest = RandomForestClassifier(20, bootstrap=False, random_state=seed).fit(*digits.private)
    advance("part 3, scores: certificate and attacks on the forest")
    leaky = _audited(forest, "the confidence of the forest, to one digit", digits, seed)
    advance("part 3, scores: the same for the private classifier")
    tight = _audited(student, "the confidence of the private classifier, to one digit", digits, seed)
    advance("part 3, scores: certificates from fewer rows")
    points, least = _growth(tight, seed)
    accuracy = float(forest.score(*digits.others))
    low = safe_text(leaky.tried[0].low, toward="down")
    chapter = Chapter(
        title="The confidence scores of an over-fitted model",
        verdict=replace(
            advantage_verdict(leaky.audit), about="The scores of an over-fitted model: telling its training digits"
        ),
        released=f"The confidence of a random forest in its answer, to one digit. The forest knows the {PRIVATE} "
        f"private digits by heart, and reads {percent(accuracy)} of the others.",
        nobody="Nobody who sees the score tells training digits from others with an advantage (true minus false "
        f"positive rate) above {up(leaky.certificate.advantage)}, where 0 is guessing and 1 is certainty.",
        attacker=f"A {leaky.tried[0].learner} reached {leaky.tried[0].value:.3f} ({low} or more): the forest gives its "
        "records away.",
        change="Publish the classifier of part 2 instead: nobody's advantage exceeds "
        f"{up(tight.certificate.advantage)}. Its price: it reads {percent(float(student.score(*digits.test)))} of the "
        "test digits. Or require larger leaves in the forest, and audit again.",
        comparisons=(leaky.audit.comparison, tight.audit.comparison),
        opening=(_roc(leaky, "What attacks on the forest can reach"),),
        figures=(
            _roc(tight, "The same for the private classifier"),
            Figure(
                title="The certificate against the number of rows",
                caption="For the private classifier. Dots: certificates from that many rows, each valid by itself. "
                "Line: what that many rows certify if nothing leaks. The dots stay above the line because any two "
                "sets of digits differ a little, even for a model that saw neither; the proof is about these digits.",
                alternative=f"The certified advantage falls from {points[0][1]:.2f} with {points[0][0]} rows to "
                f"{points[-1][1]:.3f} with {points[-1][0]}.",
                svg=figures.growth(points, least, levels={}, marked={}),
            ),
        ),
        tables=(_audit_table(leaky, tight),),
    )
    return chapter, {
        "draws": ROWS,
        "accuracy_of_the_forest": accuracy,
        **{
            name: {
                "advantage_upper": found.certificate.advantage,
                "balanced_accuracy_upper": found.certificate.balanced_accuracy,
                "auc_upper": found.certificate.auc,
                "bits_upper": found.certificate.bits,
                "attacks": {attempt.learner: list(attempt.rates.advantage) for attempt in found.tried},
            }
            for name, found in (("forest", leaky), ("private_classifier", tight))
        },
        "certificate_by_rows": {str(rows): advantage for rows, advantage in points},
    }


def _growth(found: _Audited, seed: int) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """Certificates from parts of the table, and from as many rows that leak nothing."""
    order = np.random.default_rng([seed, 2]).permutation(ROWS)
    options: dict[str, Any] = {"failure_probability": CERTIFIED, "loss": "joint"}
    points, least = [], []
    for half in (100, 200, 500, 1000, 2000, 5000, 10_000, ROWS):
        rows = np.concatenate([order[:half], ROWS + order[:half]])
        part = audit.certify(found.secret[rows], found.output[rows], **options)
        nothing = audit.certify([False, True], [0, 0], weights=[half, half], **options)
        points.append((2 * half, part.advantage))
        least.append((2 * half, nothing.advantage))
    return points, least


def _roc(found: _Audited, title: str) -> Figure:
    return Figure(
        title=title,
        caption="Nobody leaves the shaded region. Lines: attacks, which may leave it by chance.",
        alternative=f"True against false positive rate: the region reaches {up(found.certificate.advantage)} above "
        f"the diagonal, the best attack {found.tried[0].value:.2f}.",
        svg=found.certificate.plot(found.tried).svg,
    )


def _audit_table(leaky: _Audited, tight: _Audited) -> Table:
    rows = [
        (words, *(up(getattr(found.certificate, name)) for found in (leaky, tight)))
        for words, name in (
            ("advantage, at most", "advantage"),
            ("right guesses, at most", "balanced_accuracy"),
            ("area under the ROC, at most", "auc"),
            ("bits about membership, at most", "bits"),
        )
    ]
    reached = tuple(f"{found.tried[0].value:.4f}" for found in (leaky, tight))
    return Table(
        title="What nobody exceeds",
        columns=("reading", "forest", "private classifier"),
        rows=(*rows, ("advantage of the best attack", *reached)),
        note=f"Proven from {2 * ROWS} draws of these digits, half members and half others, for the average digit; each "
        f"column except with probability {CERTIFIED:g}. Guessing: 0 advantage, 0.5 right, area 0.5, 0 bits.",
    )
