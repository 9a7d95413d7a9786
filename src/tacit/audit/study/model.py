"""`audit_model`: a way of training against whoever holds the record, from a file of records to its report."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import validate
from ...core.errors import InputError
from ...core.guarantee import Comparison
from ...core.near import did_you_mean
from ...core.wording import safe_text
from ...report import BROKEN, FINE, WEAK, Change, Figure, Report, Table, Verdict, figures
from ...report.timing import Timed
from ...report.wording import percent
from ...runtime import tables
from ...runtime.user_functions import UserFunction
from ..classifiers import chances_of
from ..measuring import FALSE_POSITIVE_RATES
from ..record_attacks import ATTACKS
from ..record_audit import KNOWN, LEAST_MODELS, RecordAttack, RecordAudit, audit_records
from ..retraining import different
from .report import LARGE, SMALL

MOST_MODELS = 256
"""As many are trained at most, unless more are asked for."""
_SHOWN = 10  # exposed records in the table
_FUNCTION = "write train.py:fit, a Python file and a function of it that trains: fit(X, y) returns the fitted model"


def audit_model(
    factory: str,
    *,
    data: Path | str,
    label: str = "y",
    models: int | None = None,
    seconds: float = 120.0,
    delta: float = 0.0,
    failure_probability: float = 0.05,
    engine: str = "local",
    out: Path | str | None = None,
    resume: bool = False,
    seed: int = 0,
    pictures: bool = True,
    advance: Callable[[str], None] = lambda _: None,
) -> Report:
    """Train models on random halves of a file's records and attack them; this is what `tacit audit-model` does.

    `audit_records` takes records in memory and gives the same numbers.

    Parameters
    ----------
    factory
        FILE.py:FUNCTION, a function that trains: FUNCTION(X, y) returns a fitted classifier of scikit-learn (with
        `predict_proba`) or a torch module that returns logits.
    data
        A CSV, Parquet or npz file of records; all columns but the label hold numbers.
    label
        The column with the label.
    models
        How many models are trained; by default as many as the seconds allow, from 16 to 256.
    seconds
        How long training may take, unless the number of models is given.
    delta
        The δ of the (ε, δ)-differential privacy that attacks refute.
    failure_probability
        The chance that any limit is false.
    engine
        Where models are trained: "local", or the address of a Dask or Ray cluster.
    out
        A folder that keeps what every model said, so that a run that was stopped can continue.
    resume
        Continue the run in that folder.
    seed
        Of the coins.
    pictures
        Whether to draw the pictures for a page.
    advance
        Called with a line about each step as it begins.

    Returns
    -------
    The report.

    Raises
    ------
    InputError
        Where the file, the function or an option cannot be used.
    """
    timed = Timed(advance)
    train = UserFunction.named(factory, "factory", remedy=_FUNCTION)
    timed("reading the records")
    inputs, labels = _records(Path(data), label)
    kept = different(inputs, labels)
    copies = len(labels) - len(kept)
    inputs, labels = inputs[kept], labels[kept]
    timed("training one model, to see how long it takes")
    each = _seconds_each(train, inputs, labels, seed)
    cores = len(os.sched_getaffinity(0)) if engine == "local" else 1
    if models is None:
        allowed = validate.number("seconds", seconds, above=0, remedy="use 120") * cores / max(each, 1e-3)
        count = int(np.clip(2 * (allowed // 2), LEAST_MODELS, MOST_MODELS))
    else:
        count = validate.whole("models", models, at_least=LEAST_MODELS, remedy="train 64 or more")
    timed.expect(count * each / cores, remedy="fewer models take less")
    found = audit_records(
        train,
        inputs,
        labels,
        models=count,
        delta=delta,
        failure_probability=failure_probability,
        engine=engine,
        out=out,
        resume=resume,
        seed=seed,
        advance=timed,
    )
    return _page(Path(data).name, factory, found, kept + 1, copies=copies, pictures=pictures)


def _records(path: Path, label: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Numbers of every record, and its label as text or number."""
    table = tables.read(path, name="data")
    if label not in table:
        raise InputError(
            "label",
            label,
            requirement=f"must name one of the {len(table)} columns of `data`",
            remedy=did_you_mean(label, table, "check its name"),
        )
    labels = table.pop(label)
    known = _labels(labels)
    columns = []
    for name, values in table.items():
        try:
            columns.append(np.asarray(values, dtype=np.float64))
            if not np.isfinite(columns[-1]).all():
                raise ValueError
        except (TypeError, ValueError):
            raise InputError(
                f"column {name!r} of `data`",
                "text or nothing in some record",
                requirement="must hold a number for every record",
                remedy="encode it as numbers first, and save an .npz file of X and y",
            ) from None
    if not columns:
        raise InputError("data", str(path), requirement="must have columns beside the label", remedy="add features")
    return np.column_stack(columns), known


def _labels(column: NDArray[Any]) -> NDArray[Any]:
    """Labels as they are; those of a CSV file, which are text, as whole numbers if all of them are written so."""
    if column.dtype.kind != "O":
        return column
    texts = ["" if one is None else str(one) for one in column]
    if "" in texts:
        raise InputError(
            "the column of `label`",
            "a record without one",
            requirement="must hold a label for every record",
            remedy="leave such records out",
        )
    whole = all(re.fullmatch("0|-?[1-9][0-9]{0,17}", text) for text in texts)
    return np.array([int(text) for text in texts] if whole else texts)


def _seconds_each(train: UserFunction, inputs: NDArray[Any], labels: NDArray[Any], seed: int) -> float:
    """How long it takes to train one model and ask it; whatever the user's function raises is told."""
    half = np.random.default_rng(seed).random(len(labels)) < 0.5
    begun = time.monotonic()
    try:
        chances_of(train(inputs[half], labels[half]), inputs, np.unique(labels))
    except (Exception, SystemExit) as failure:  # the user's own code may raise anything
        raise train.refused(failure) from None
    return time.monotonic() - begun


def _page(
    name: str, factory: str, found: RecordAudit, numbers: NDArray[np.int64], *, copies: int, pictures: bool
) -> Report:
    best = found.attacks[0]
    return Report(
        command="audit-model",
        title=f"What models trained by {factory.rpartition(':')[2]} tell about the records of {name}",
        summary=_summary(found, best, copies),
        comparisons=found.comparisons,
        verdicts=tuple(_verdict(comparison) for comparison in found.comparisons),
        opening=(_roc(found),) if pictures else (),
        changes=_changes(found),
        figures=(_exposed(found),) if pictures else (),
        tables=(_attacks(found), _most_exposed(found, numbers)),
        detail={
            "models": found.models,
            "records": found.records,
            "delta": found.delta,
            "epsilon_lower": found.epsilon,
            "attacks": [attack.to_dict() for attack in found.attacks],
            "exposure": found.exposure.tolist(),
            "numbers": numbers.tolist(),
        },
    )


def _summary(found: RecordAudit, best: RecordAttack, copies: int) -> tuple[str, ...]:
    at = {aim: max(dict(attack.at_rates)[aim] for attack in found.attacks) for aim in FALSE_POSITIVE_RATES}
    adversary = (
        "This is about an adversary who holds the record, has the others (but does not know which of them were used), "
        f"and can train models of the same kind: {found.models} models were trained, each on a random half of "
        f"{found.records} records, and half of them attacked with the others."
        + f" {copies} copies of records were left out."
        * bool(copies)
    )
    reached = (
        f"The best attack ({ATTACKS[best.name][0]}) tells with an advantage of "
        f"{safe_text(best.value, toward='nearest')} whether a model was trained on a record, at least "
        f"{safe_text(best.low, toward='down')} by its limit; 0 is guessing, 1 is certainty."
    )
    rates = (
        f"At one false alarm in a thousand records, attacks find {percent(at[0.001])} of the members; at one in a "
        f"hundred, {percent(at[0.01])}."
    )
    refuted = (
        "Guesses were right too often for a training that is (ε, δ)-differentially private for adding or removing one "
        f"record, with δ = {found.delta!r} and ε below {safe_text(found.epsilon, toward='down')}."
        if found.epsilon > 0
        else "The guesses refute no ε."
    )
    return adversary, reached, rates, refuted


def _verdict(comparison: Comparison) -> Verdict:
    """How one release stands against its best attack; by the same bounds as an audit of a table."""
    guarantee, best = comparison.guarantee, comparison.attacks[0]
    certified = guarantee.value < 1
    if comparison.contradicted:
        level, reason = BROKEN, "An attack did what the guarantee rules out: an assumption is wrong."
    elif best.value >= LARGE:
        level, reason = BROKEN, "An attack tells members from others; 0 is guessing, 1 is certainty."
    elif guarantee.value <= SMALL:
        level, reason = FINE, "Hardly better than guessing, which is 0; 1 is certainty."
    else:
        level, reason = (
            WEAK,
            "A larger advantage is not ruled out; 0 is guessing, 1 is certainty. More models rule out more.",
        )
    return Verdict(
        level=level,
        about=f"Releasing {_released(comparison)}",
        proven=f"advantage at most {safe_text(guarantee.value, toward='up')}" if certified else "nothing is proven",
        reached=safe_text(best.value, toward="nearest"),
        reason=reason,
        scope="for everyone who holds the record and sees this once, on average over records" if certified else "",
    )


def _released(comparison: Comparison) -> str:
    """What is released, in words."""
    return comparison.guarantee.adversary.scope.removeprefix(KNOWN)


def _changes(found: RecordAudit) -> tuple[Change, ...]:
    label, _, everything = found.comparisons
    private = Change(
        what="Train with differential privacy, or publish a private classifier (tacit learn).",
        price="accuracy; the guarantee then needs no attack and no repeated training.",
    )
    if everything.attacks[0].value < SMALL:
        return (private,)
    return (
        Change(
            what="Release the likeliest class alone: the best attack then reaches "
            f"{safe_text(label.attacks[0].value, toward='nearest')}.",
            price="users no longer see how sure the model is.",
        ),
        Change(
            what="Train with a penalty, early stopping, or fewer and shallower trees, and audit that.",
            price="accuracy on training records; often none on others.",
        ),
        private,
    )


def _roc(found: RecordAudit) -> Figure:
    tried = found.comparisons[-1].attacks
    curves = {ATTACKS[one.name][0]: one.roc for one in found.attacks if one.adversary == tried[0].adversary}
    return Figure(
        title="How many members each attack finds, at how many false alarms",
        caption="Both axes are logarithmic. Across: the share of other records that an attack calls members. Up: the "
        "share of members that it finds. On the dashed line an attack guesses.",
        alternative=f"ROC curves of {', '.join(curves)}; the largest area below one is "
        f"{max(one.auc for one in found.attacks):.3f}.",
        svg=figures.log_roc(curves),
    )


def _exposed(found: RecordAudit) -> Figure:
    order = np.argsort(-found.exposure)[np.unique(np.linspace(0, found.records - 1, 200).astype(int))]
    shares = np.linspace(0, 1, len(order))
    return Figure(
        title="How exposed each record is",
        caption="The most exposed records come first. For each, an estimate of the advantage with which its own "
        "probability tells models that were trained on it from others. It is an estimate from few models, not a limit.",
        alternative=f"Half of the records are above {float(np.median(found.exposure)):.3f}, one in ten above "
        f"{float(np.quantile(found.exposure, 0.9)):.3f}.",
        svg=figures.curve(
            shares.tolist(), found.exposure[order].tolist(), x_label="share of records", y_label="estimated advantage"
        ),
    )


def _attacks(found: RecordAudit) -> Table:
    seen = {
        comparison.guarantee.adversary: short
        for comparison, short in zip(found.comparisons, ("class", "class, digit", "all"), strict=True)
    }
    return Table(
        title="Attacks by whoever holds the record",
        columns=(
            "attack",
            "sees",
            "advantage",
            "at least",
            *(f"TPR at FPR {aim:g}" for aim in FALSE_POSITIVE_RATES),
            "AUC",
            "ε at least",
        ),
        rows=tuple(
            (
                ATTACKS[one.name][0],
                seen[one.adversary],
                f"{one.value:.3f}",
                safe_text(one.low, toward="down"),
                *(f"{rate:.3f}" for _, rate in one.at_rates),
                f"{one.auc:.3f}",
                safe_text(one.epsilon, toward="down"),
            )
            for one in found.attacks
        ),
        note="Seen is the likeliest class, that class with its probability to a digit, or all of them. Measured on "
        "models that rules were not chosen on; true positive rates at the best threshold afterwards. "
        "Limits of advantages count models, limits of ε count guesses.",
    )


def _most_exposed(found: RecordAudit, numbers: NDArray[np.int64]) -> Table:
    order = np.argsort(-found.exposure, kind="stable")[:_SHOWN]
    return Table(
        title="The most exposed records",
        columns=("record", "estimated advantage"),
        rows=tuple((str(numbers[place]), f"{found.exposure[place]:.3f}") for place in order.tolist()),
        note="Records are numbered from 1 in the order of the file; the JSON has all of them.",
    )
