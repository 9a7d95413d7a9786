"""Membership against whoever holds the record: what every attack reached, and what no attack can."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.encoding import decoded
from ..core.errors import InputError
from ..core.guarantee import Adversary, Assumption, Attack, Comparison, Guarantee
from ..core.rounding import down, up
from ..theory.confidence import sampled_mean_lower, sampled_mean_upper
from ..theory.membership import guessing_distance, guessing_epsilon, retrained_advantage
from .classifiers import records_of
from .curve import ImpliedByDP
from .learners import roc_counts
from .measuring import FALSE_POSITIVE_RATES
from .menu import halfway
from .record_attacks import (
    ATTACKS,
    OF_NUMBERS,
    OF_PROBABILITIES,
    as_chances,
    exposure,
    exposure_by_counts,
)
from .retraining import Retrained, different, retrain

LEAST_MODELS = 16
"""Half of them are attacked."""
KNOWN = "the record, the others (but not which of them were used) and "
"""What the adversary holds beside what is released."""
DIGITS = 1
"""To how many digits a confidence is rounded that is certified."""
_GUESSED = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of all coins that are guessed, half of them to be inside; one of these is chosen on other models."""
_MOST_POINTS = 200

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class RecordAttack(Attack):
    """An attack by whoever holds the record, on models that its rule was not chosen on.

    It is an `Attack` whose value is the advantage TPR − FPR.

    Attributes
    ----------
    name
        Which of `ATTACKS`.
    auc
        The area under its ROC curve, over all pairs of a record and a model.
    at_rates
        False positive rates, and the true positive rate that some threshold reaches there on the models attacked.
    epsilon
        A lower limit for ε: no training that is private for adding or removing one record with a smaller one, at the
        stated δ, lets guesses be right so often.
    mu
        A lower limit for μ, if the training is Gaussian differentially private: a claim about all ε and δ at once.
    roc
        False and true positive rates, for pictures.
    """

    name: str
    auc: float
    at_rates: tuple[tuple[float, float], ...]
    epsilon: float
    mu: float
    roc: tuple[tuple[float, float], ...]

    @classmethod
    def _field_from_dict(cls, name: str, value: object) -> Any:
        if name in ("at_rates", "roc") and isinstance(value, list):
            return tuple(tuple(decoded(point)) for point in value)
        return super()._field_from_dict(name, value)


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordAudit:
    """What whoever holds a record can tell about its membership.

    Attributes
    ----------
    comparisons
        For each release (the likeliest class; that class with its rounded probability; all probabilities) what is
        guaranteed about everyone who sees it, and the attacks on it.
    attacks
        All attacks, the best one first.
    exposure
        For each record, an estimate of the advantage on it alone, by the logit of its own label.
    records, models
        How many there were; half of the models were attacked, with the others as shadow models.
    delta
        The δ of the ε that attacks refute.
    claimed
        What the training was stated to be, and what this implies for everyone; None if nothing was stated.
    """

    comparisons: tuple[Comparison, ...]
    attacks: tuple[RecordAttack, ...]
    exposure: _Floats
    records: int
    models: int
    delta: float
    claimed: ImpliedByDP | None = None

    @property
    def epsilon(self) -> float:
        """A lower limit for ε of the training, by the best of all attacks."""
        return max(attack.epsilon for attack in self.attacks)

    @property
    def mu(self) -> float:
        """A lower limit for μ of the training, if it is Gaussian differentially private."""
        return max(attack.mu for attack in self.attacks)

    @property
    def refuted(self) -> bool:
        """Whether the training cannot be as private as it was stated to be."""
        return self.claimed is not None and self.epsilon > self.claimed.epsilon


def audit_records(
    factory: Callable[[Any, Any], Any],
    X: Any,  # noqa: N803 — scikit-learn's name
    y: Any,
    *,
    models: int = 64,
    delta: float = 0.0,
    trained_with: tuple[float, float] | None = None,
    failure_probability: float = 0.05,
    engine: str = "local",
    out: Path | str | None = None,
    resume: bool = False,
    seed: int = 0,
    advance: Callable[[str], None] = lambda _: None,
) -> RecordAudit:
    """Audit a way of training against adversaries who hold the record, know the others, and train models themselves.

    Parameters
    ----------
    factory
        A function that trains a model, factory(X, y), and returns a fitted classifier of scikit-learn (with
        `predict_proba`) or a torch module that returns logits. All that it learns must come from what it is given.
    X
        The records, a row each, all of them different. Models are trained on random halves, so pass twice as many as
        the model will have.
    y
        Their labels.
    models
        How many models are trained. Half of them are attacked, the others are the adversary's.
    delta
        The δ of the (ε, δ)-differential privacy that attacks refute; 0 for pure ε.
    trained_with
        (ε, δ) that the training is stated to have, for adding or removing one record; `delta` is then this δ. What it
        implies stands beside the attacks, and is refuted if they did better.
    failure_probability
        The chance that any limit is false. Half of it is that of the guarantees, half of it that of the attacks.
    engine
        Where they are trained: "local", or the address of a Dask or Ray cluster.
    out
        A folder that keeps what every model said, so that a run that was stopped can go on.
    resume
        Go on with the run in that folder.
    seed
        Of the coins.
    advance
        Called with a line about the progress.

    Returns
    -------
    Guarantees, attacks, and how exposed each record is.

    Raises
    ------
    InputError
        Where records and labels do not fit together, or a training fails.
    """
    failure = validate.probability("failure_probability", failure_probability, remedy="use a small one such as 0.05")
    claimed = claim(trained_with, delta)
    validate.whole("models", models, at_least=LEAST_MODELS, remedy="train 64 or more")
    inputs, labels = records_of("X, y", (X, y))
    copies = len(labels) - len(different(inputs, labels))
    if copies:
        raise InputError(
            "X, y",
            f"{copies} copies of others",
            requirement="must be records that differ, since a copy would tell that the record is there",
            remedy="leave the copies out",
        )
    found = retrain(
        factory, inputs, labels, models=models, engine=engine, out=out, resume=resume, seed=seed, advance=advance
    )
    advance("attacking")
    return audited(found, delta=delta, claimed=claimed, failure_probability=failure)


def claim(trained_with: tuple[float, float] | None, delta: float) -> ImpliedByDP | None:
    """What the training is stated to be, if anything; refuses a δ that is not one, or another than that stated."""
    validate.number("delta", delta, at_least=0, below=1, remedy="use 0, or the δ of the claim")
    if trained_with is None:
        return None
    try:
        epsilon, stated = trained_with
    except (TypeError, ValueError):
        raise InputError(
            "trained_with", trained_with, requirement="must be (ε, δ)", remedy="give both, e.g. 3 and 1e-5"
        ) from None
    epsilon = validate.number("the ε of `trained_with`", epsilon, at_least=0, remedy="give that of the accountant")
    stated = validate.number("the δ of `trained_with`", stated, at_least=0, below=1, remedy="use 0 for pure ε")
    if delta not in (0, stated):
        raise InputError(
            "delta", delta, requirement=f"must be that of `trained_with`, {stated!r}", remedy="leave out `delta`"
        )
    return ImpliedByDP(epsilon=epsilon, delta=stated)


def audited(
    found: Retrained, *, delta: float, failure_probability: float, claimed: ImpliedByDP | None = None
) -> RecordAudit:
    """The audit of models that were trained already, as `audit_records` describes it."""
    rounded = np.round(found.largest, DIGITS)
    half = halfway(found.largest, 10.0**-DIGITS)
    digit = np.unique(np.where(half > 0, half, rounded), return_inverse=True)[1].reshape(rounded.shape)
    coarse = replace(found, chances=np.where(found.right, rounded, 1 - rounded))
    everything = tuple(name for name in OF_PROBABILITIES if name != "qmia" or found.inputs is not None)
    views = (
        _View("the likeliest class for the record", found, found.predicted, ("label",)),
        _View(
            f"the likeliest class for the record, with its probability to {DIGITS} digit",
            coarse,
            found.predicted + found.classes * digit,
            ("lira",),
        ),
        _View("the probabilities of all classes for all records", found, None, everything),
    )
    return _audited(views, exposure(found), delta=delta, failure=failure_probability, claimed=claimed, tossed="code")


def audited_outputs(
    outputs: NDArray[Any],
    inside: NDArray[np.bool_],
    *,
    name: str,
    delta: float,
    failure_probability: float,
    claimed: ImpliedByDP | None = None,
) -> RecordAudit:
    """The audit of one output of models that somebody else trained on random halves, models × records.

    Outputs that are numbers are also attacked as numbers, whatever they mean; larger or smaller ones are taken for
    members, by what the first half of the models shows.
    """
    exact = outputs.view(f"u{outputs.dtype.itemsize}") if outputs.dtype.kind == "f" else outputs  # −0 is not 0
    codes = np.unique(exact, return_inverse=True)[1].reshape(outputs.shape)
    chances = as_chances(outputs, inside[: len(inside) // 2])
    found = Retrained(
        inside=inside,
        chances=np.full(outputs.shape, 0.5) if chances is None else chances,
        predicted=codes,
        largest=np.ones(outputs.shape),
        labels=np.zeros(outputs.shape[1], dtype=np.int64),
    )
    names = ("counts",) if chances is None else ("counts", *OF_NUMBERS)
    exposed = exposure_by_counts(found) if chances is None else exposure(found)
    views = (_View(f"{name} for the record", found, codes, names),)
    return _audited(views, exposed, delta=delta, failure=failure_probability, claimed=claimed, tossed="caller")


@dataclass(frozen=True, eq=False)
class _View:
    """What is released in words, what attacks make of it, as codes if it is certified, and the attacks on it."""

    release: str
    told: Retrained
    codes: NDArray[np.int64] | None
    names: tuple[str, ...]


def _audited(
    views: tuple[_View, ...],
    exposed: _Floats,
    *,
    delta: float,
    failure: float,
    claimed: ImpliedByDP | None,
    tossed: str,
) -> RecordAudit:
    if claimed is not None:
        delta = claimed.delta
    # Half of the failure probability is shared by certified releases. Of the rest, half is for advantages, a quarter
    # each for ε and μ.
    certified = failure / 2 / sum(view.codes is not None for view in views)
    share = failure / 4 / sum(len(view.names) for view in views)
    attacks: list[RecordAttack] = []
    comparisons = []
    for view in views:
        guarantee = _guarantee(view, failure=certified, tossed=tossed)
        made = [_attacked(name, view.told, guarantee, delta=delta, failure=share) for name in view.names]
        made.sort(key=lambda attack: -attack.value)
        attacks += made
        comparisons.append(Comparison(guarantee=guarantee, attacks=made))
    count, records = views[0].told.inside.shape
    return RecordAudit(
        comparisons=tuple(comparisons),
        attacks=tuple(sorted(attacks, key=lambda attack: -attack.value)),
        exposure=exposed,
        records=records,
        models=count,
        delta=delta,
        claimed=claimed,
    )


def _guarantee(view: _View, *, failure: float, tossed: str) -> Guarantee:
    """What nobody can tell by what is released; of numbers that hardly ever repeat, nothing."""
    count, records = view.told.inside.shape
    common: dict[str, Any] = {
        "quantity": f"advantage (TPR − FPR) in telling by {view.release} whether a model trained on a random half of "
        f"{records} records has seen it, on average over all",
        "side": "at_most",
        "adversary": Adversary.OUTPUT.scoped(f"{KNOWN}{view.release}"),
    }
    if view.codes is None:
        theorem = ("none: probabilities hardly ever repeat, so that trainings cannot be compared",)
        return Guarantee(**common, value=1.0, theorem=theorem, assumptions=())
    plug_in = _plug_in(view.codes, view.told.inside)
    return Guarantee(
        **common,
        value=retrained_advantage(plug_in, models=count, failure_probability=failure),
        theorem=("theory.membership.retrained_advantage", "theory.confidence.bounded_mean_upper"),
        assumptions=(
            Assumption(text="each record was in each training with probability 1/2, independently", checked_by=tossed),
            Assumption(text="no two of the records are copies of each other", checked_by=tossed),
            Assumption(
                text="each training learns from the records that it is given alone: nothing of the others, nothing of "
                "an earlier training, and what it draws is drawn afresh",
                checked_by="caller",
            ),
            Assumption(
                text="the adversary sees one answer, that on the record itself, and does not know which other records "
                "the model was trained on",
                checked_by="caller",
            ),
            Assumption(text="records, models and seed were chosen before the answers were seen", checked_by="caller"),
        ),
        failure_probability=failure,
        detail={"plug_in": plug_in, "models": count, "records": records},
    )


def _plug_in(codes: NDArray[np.int64], inside: NDArray[np.bool_]) -> float:
    """The advantage on these models of the rule that fits them best, rounded up."""
    count, records = codes.shape
    cells = np.unique(codes, return_inverse=True)[1].reshape(codes.shape)
    cells = cells + np.arange(records) * (int(cells.max()) + 1)
    places = np.unique(cells, return_inverse=True)[1].ravel()
    signs = np.bincount(places, weights=np.where(inside, 1, -1).ravel())  # sums of whole numbers, exact
    return float(min(1.0, up(float(np.abs(signs).sum()) / (count * records))))


def _attacked(name: str, found: Retrained, guarantee: Guarantee, *, delta: float, failure: float) -> RecordAttack:
    """One attack: rules are chosen on half of the models, each against the rest of these, and tried on the others."""
    words, score = ATTACKS[name]
    count = len(found.inside)
    ours, theirs = found.part(slice(None, count // 2)), found.part(slice(count // 2, None))
    others = [_without(ours, number) for number in range(count // 2)]
    chosen, chosen_inside = _guessable(np.concatenate([score(rest, one) for rest, one in others]), ours.inside)
    scores, inside = _guessable(score(ours, theirs), theirs.inside)
    thresholds, hits, alarms = roc_counts(chosen.ravel(), chosen_inside.ravel())
    said = scores >= thresholds[int(np.argmax(hits / hits[-1] - alarms / alarms[-1]))]
    signs = np.where(inside, 1.0, -1.0)
    gains = (1 + (signs * np.where(said, 1.0, -1.0)).mean(axis=1)) / 2  # a value a model, with mean (1 + TPR − FPR)/2
    value = 2 * float(gains.mean()) - 1
    _, hit, alarm = roc_counts(scores.ravel(), inside.ravel())
    true, false = hit / hit[-1], alarm / alarm[-1]
    aims = np.geomspace(1, alarm[-1], _MOST_POINTS)
    places = np.unique([0, *np.searchsorted(alarm, aims, side="right") - 1])

    told = theirs.inside.shape[1] - inside.shape[1]
    tried = {share: guessed(chosen, chosen_inside, share) for share in _GUESSED}
    limits = []
    for limit in (functools.partial(guessing_epsilon, delta=delta), guessing_distance):
        shown = functools.partial(_shown, limit, failure=failure / 2)
        found_by = {guesses: shown(guesses, chosen_inside.size) for guesses in set(tried.values())}
        best = max(_GUESSED, key=lambda share: found_by[tried[share]])
        limits.append(shown(guessed(scores, inside, best), inside.size))
    return RecordAttack(
        quantity=guarantee.quantity,
        value=value,
        low=min(value, down(2 * sampled_mean_lower(gains, failure_probability=failure / 2) - 1)),
        high=max(value, min(1.0, up(2 * sampled_mean_upper(gains, failure_probability=failure / 2) - 1))),
        failure_probability=failure,
        adversary=guarantee.adversary,
        method=f"{words} ({len(ours.inside)} models to compare with, {len(theirs.inside)} attacked)"
        + f", told which of {told} records were used" * bool(told),
        name=name,
        auc=float(np.trapezoid(true, false)),
        at_rates=tuple((aim, float(true[false <= aim].max())) for aim in FALSE_POSITIVE_RATES),
        epsilon=limits[0],
        mu=limits[1],
        roc=tuple(zip(false[places].tolist(), true[places].tolist(), strict=True)),
    )


def _guessable(scores: _Floats, inside: NDArray[np.bool_]) -> tuple[_Floats, NDArray[np.bool_]]:
    """Scores and coins of the records that the attack is not told about."""
    left = ~np.isnan(scores[0])
    return scores[:, left], inside[:, left]


def _without(models: Retrained, number: int) -> tuple[Retrained, Retrained]:
    """All models but one, and that one."""
    rest = np.arange(len(models.inside)) != number
    return models.part(rest), models.part(~rest)


def guessed(scores: _Floats, inside: NDArray[np.bool_], share: float) -> tuple[int, int]:
    """Right guesses, and all of them: the largest scores are guessed to be inside, as many small ones outside."""
    order = np.argsort(scores.ravel(), kind="stable")  # ties by place, which tells nothing about coins
    each = max(1, int(share * len(order) / 2))
    coins = inside.ravel()
    return int(coins[order[-each:]].sum() + (~coins[order[:each]]).sum()), 2 * each


def _shown(limit: Callable[..., float], made: tuple[int, int], coins: int, *, failure: float) -> float:
    """What so many right guesses, of so many, show."""
    correct, guesses = made
    return limit(correct, guesses=guesses, coins=coins, failure_probability=failure)
