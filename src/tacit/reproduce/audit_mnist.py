"""What a classifier's answers tell about whether an image was in its training set."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from ..audit import ImpliedByDP, membership
from ..core import validate
from ..core.errors import InputError
from ..core.wording import safe_text
from ..learning import MomentClassifier, OrientedGradients
from ..report import Change, Report
from ..report.wording import percent
from ..runtime import run_folder
from . import audit_page as page
from .audit_cases import Advance, Array, Case, Found, Task, audited, mark
from .data import mnist_rows

LOSS_NOISE, LIRA_NOISE = 0.1, 0.5
BUDGETS = {"private, ε = 1": 1.0, "hardly any noise": 100.0}
"""The same learner twice: private, and with so little noise that it shows what the learner does without."""

PRIVATE_DELTA = 1e-5
HIDDEN, EPOCHS = 128, 40  # of the network that learns its images by heart
COMPONENTS = 300  # of the private classifier's public features

_LEARNED = "learned by heart"
_NOISY_LOSS, _NOISY_LIRA = "noisy loss", "noisy LiRA score"
_SCORES = ("loss", "confidence", "entropy", "correct", "lira")
_ATTACKED = 40_000  # rows, where they are drawn with replacement


def membership_steps(task: Task) -> list[float]:
    """Return about how many seconds each step takes: reading, training with shadow models, and audits."""
    share, models = (task.records or 3_000) / 3_000, 1 + task.shadows
    audit = 1.0 + 2e-5 * task.rows
    return [0.0, 4.0 * share * models, *[(10.0 + models) * share] * len(BUDGETS), *[audit] * 4 * (1 + len(BUDGETS))]


def membership_audits(task: Task, folder: Path, advance: Advance) -> Report:
    """Audit membership: members and others are training images of MNIST, its test images are public."""
    validate.whole("--rows", task.rows, at_least=400, remedy="leave it out")
    validate.whole("--shadows", task.shadows, at_least=4, remedy="leave it out")
    images, labels, public, _ = mnist_rows(folder / "mnist")
    count = 3_000 if task.records is None else task.records
    if 2 * count > len(labels):
        raise InputError("--records", count, requirement=f"must be at most {len(labels) // 2}", remedy="lower it")
    run_folder.claim(task.out, mark(task, [images, public]), resume=task.resume)
    places = np.random.default_rng([task.seed, count]).permutation(len(labels))[: 2 * count]
    sides = places[:count], places[count:]
    tables = {}
    advance(f"training: {_LEARNED}")
    by_heart = partial(_by_heart, seed=task.seed)
    pixels = [(images[side], labels[side]) for side in sides]
    tables[_LEARNED] = _scores(task, "by-heart", by_heart, lambda: pixels)
    features = make_pipeline(OrientedGradients(), Nystroem(gamma=2.0, n_components=COMPONENTS, random_state=0))

    def transformed() -> list[tuple[Array, Array]]:
        if not hasattr(features, "public_"):
            features.public_ = features.fit(public).transform(public)
        return [(features.transform(images[side]), labels[side]) for side in sides]

    for name, epsilon in BUDGETS.items():
        advance(f"training: {name}")
        tables[name] = _scores(
            task,
            f"private-{epsilon:g}",
            lambda x, y, epsilon=epsilon: _Chances(epsilon, x, y, features.public_),  # type: ignore[misc]
            transformed,
        )
    cases = []
    for name, table in tables.items():
        known = dict(zip(_SCORES, table[1:], strict=True))
        private = ImpliedByDP(epsilon=BUDGETS[name], delta=PRIVATE_DELTA) if name in BUDGETS else None
        common = {"model": name, "secret": "member", "secrets": table[0] == 1, "private": private}
        right, confidence = known["correct"].astype(np.int64), np.round(known["confidence"], 1)
        cases += [
            Case(**common, output="right or wrong", outputs=right),
            Case(**common, output="confidence, 1 digit", outputs=confidence),
            Case(**common, output=_NOISY_LOSS, outputs=known["loss"], noise=LOSS_NOISE),
            Case(**common, output=_NOISY_LIRA, outputs=known["lira"], noise=LIRA_NOISE),
        ]
    half = task.rows // 2
    attacked = np.arange(min(_ATTACKED // 2, half))
    found = audited(task, cases, advance, attacked=np.concatenate([attacked, half + attacked]))
    shown = page.intervals(
        {f"{one['output']} ({one['model']})": one for one in found}, "What answers tell about the training images"
    )
    return page.delivered(
        task,
        title="What a classifier of digits tells about its training images",
        heading="MNIST: membership",
        summary=_membership_summary(task, count, tables, found),
        tables=page.tables(
            found,
            ("model", "output"),
            "DP allows: what the model's own guarantee implies, without any table, if a coin decided before training "
            "who is a member. Noisy: with Gaussian noise, "
            f"{LOSS_NOISE:g} on the loss and {LIRA_NOISE:g} on the LiRA score. Hardly any noise: the private "
            f"learner with ε = {BUDGETS['hardly any noise']:g}.",
        ),
        found=found,
        shown={
            "intervals": shown,
            "roc-by-heart": page.roc(page.one_of(found, _LEARNED, "member", _NOISY_LIRA)),
            "roc-private": page.roc(page.one_of(found, next(iter(BUDGETS)), "member", _NOISY_LOSS)),
        },
        changes=(_private_instead(tables),),
    )


def _private_instead(tables: Mapping[str, Array]) -> Change:
    """Say what the private classifier costs."""
    private, place = next(iter(BUDGETS)), 1 + _SCORES.index("correct")
    by_heart, other = (tables[name][place][tables[name][0] == 0].mean() for name in (_LEARNED, private))
    return Change(
        what=f"Publish the private classifier ({private}) instead of the one that learned by heart.",
        price=f"{percent(other)} of other images are classified correctly, instead of {percent(by_heart)}.",
    )


def _scores(
    task: Task, name: str, train: Callable[[Array, Array], Any], records: Callable[[], list[tuple[Array, Array]]]
) -> Array:
    """Return rows drawn from members and others: whether each is a member, and the model's scores."""

    def made() -> NDArray[np.float64]:
        members, others = records()
        model = train(*members)
        table = membership(
            model, members, others, factory=train, shadows=task.shadows, draws=task.rows // 2, seed=task.seed
        )
        columns = [table.member, *(table.scores[score] for score in _SCORES)]
        return np.array(columns, dtype=np.float64)

    return run_folder.array(task.out / f"scores-{name}.npy", (1 + len(_SCORES), 2 * (task.rows // 2)), made)


def _by_heart(images: Array, labels: Array, *, seed: int) -> Any:
    """Train a network without any penalty for long enough to be right about all of 3000 images."""
    model = MLPClassifier((HIDDEN,), alpha=0.0, max_iter=EPOCHS, n_iter_no_change=EPOCHS, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it stops after EPOCHS on purpose
        # scikit-learn answers Ctrl-C with a warning and a half-trained network.
        warnings.filterwarnings("error", message="Training interrupted by user")
        try:
            return model.fit(images, labels)
        except UserWarning:
            raise KeyboardInterrupt from None


class _Chances:
    """A private classifier with probabilities: a softmax of its scores, scaled by their size on public records."""

    def __init__(self, epsilon: float, inputs: Array, labels: Array, public: Array) -> None:
        model = MomentClassifier(epsilon=epsilon, delta=PRIVATE_DELTA, ridge=0.5, classes=range(10))
        self._model = model.fit(inputs, labels, public)
        self._size = float(np.std(self._model.decision_function(public)))
        self.classes_ = self._model.classes_

    def predict_proba(self, inputs: Array) -> NDArray[np.float64]:
        chances: NDArray[np.float64] = special.softmax(self._model.decision_function(inputs) / self._size, axis=1)
        return chances


def _membership_summary(task: Task, count: int, tables: Mapping[str, Array], found: list[Found]) -> tuple[str, ...]:
    right = []
    for name, table in tables.items():
        correct = dict(zip(_SCORES, table[1:], strict=True))["correct"]
        member, other = (100 * correct[table[0] == side].mean() for side in (1, 0))
        right.append(f"{member:.1f} and {other:.1f} % ({name})")
    private, bare = BUDGETS
    implied = safe_text(ImpliedByDP(epsilon=BUDGETS[private], delta=PRIVATE_DELTA).advantage, toward="up")
    worst = {name: max(one["high"] for one in found if one["model"] == name) for name in tables}
    shown = {name: max(one["low"] for one in found if one["model"] == name) for name in tables}
    low, high = safe_text(shown[_LEARNED], toward="down"), safe_text(worst[_LEARNED], toward="up")
    return (
        (
            f"{count} training images are members, {count} others are not. For each audit, {task.rows} rows are drawn "
            "from them with replacement, so that rows are independent given the model: certificates are about a "
            "random one of these members against a random one of these others."
        ),
        (
            f"Accuracy on members and others: {'; '.join(right)}. The private classifiers use public features, made "
            "from MNIST's test images without their labels; the network does not."
        ),
        (
            f"From the worst of the four outputs of the network that learned by heart, an attack reaches {low}, and "
            f"nobody more than {high}."
        ),
        (
            f"No output of the private classifier gives anyone more than {safe_text(worst[private], toward='up')}. Its "
            f"guarantee alone, ε = {BUDGETS[private]:g} at δ = {PRIVATE_DELTA:g}, would allow {implied}: that holds "
            "for the worst record and for adversaries who see the whole model, the certificate for the average record "
            "and one output."
        ),
        (
            f"The same learner with hardly any noise gives nobody more than {safe_text(worst[bare], toward='up')}, and "
            f"an attack {safe_text(shown[bare], toward='down')}: that part of the protection comes from the learner, "
            "not from the noise."
        ),
        (
            "The loss needs the image's label. The LiRA score needs the image and "
            f"{task.shadows} shadow models as well; its certificate covers adversaries who see only that score."
        ),
        *page.counted(found),
    )
