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
from ...core.near import did_you_mean
from ...core.wording import safe_text
from ...report import Change, Report
from ...report.timing import Timed
from ...runtime import tables
from ...runtime.user_functions import UserFunction
from ..classifiers import chances_of
from ..record_audit import LEAST_MODELS, RecordAudit, audit_records, claim
from ..retraining import different
from .record_report import PRIVATE, record_page
from .report import SMALL

MOST_MODELS = 256
"""As many are trained at most, unless more are asked for."""
RELEASES = ("class", "digit")
"""What can be proven to keep a ceiling, in the order of what is audited: more than these is attacked, not certified."""
_FUNCTION = "write train.py:fit, a Python file and a function of it that trains: fit(X, y) returns the fitted model"


def audit_model(
    factory: str,
    *,
    data: Path | str,
    label: str = "y",
    models: int | None = None,
    seconds: float = 120.0,
    delta: float = 0.0,
    trained_with: tuple[float, float] | None = None,
    failure_probability: float = 0.05,
    require_advantage: float | None = None,
    release: str | None = None,
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
    trained_with
        (ε, δ) that the training is stated to have, for adding or removing one record; `delta` is then this δ. The
        report says what it implies, and whether the attacks refute it; its `met` is then False.
    failure_probability
        The chance that any limit is false.
    require_advantage
        The ceiling for the advantage of whoever holds the record and sees the release, on average over records.
    release
        What is released, which the ceiling is for: "class" (the likeliest class) or "digit" (that class with its
        probability to a digit). Of the probabilities of all classes, no ceiling can be proven.
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
    The report; its `met` says whether the ceiling is proven, and what was stated is not refuted.

    Raises
    ------
    InputError
        Where the file, the function or an option cannot be used.
    """
    timed = Timed(advance)
    claim(trained_with, delta)  # before anything is trained
    _check_ceiling(require_advantage, release)
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
        trained_with=trained_with,
        failure_probability=failure_probability,
        engine=engine,
        out=out,
        resume=resume,
        seed=seed,
        advance=timed,
    )
    done = (
        f"{found.models} models were trained, each on a random half of {found.records} records, and half of "
        "them attacked with the others." + f" {copies} copies of records were left out." * bool(copies)
    )
    return record_page(
        found,
        command="audit-model",
        title=f"What models trained by {factory.rpartition(':')[2]} tell about the records of {Path(data).name}",
        done=done,
        sees=("class", "class, digit", "all"),
        changes=_changes(found),
        names=(kept + 1).tolist(),
        pictures=pictures,
        require_advantage=require_advantage,
        required_of=None if release is None else RELEASES.index(release),
    )


def _check_ceiling(require_advantage: float | None, release: str | None) -> None:
    if release is not None:
        validate.choice("release", release, RELEASES, remedy="use 'class'")
    if require_advantage is not None:
        validate.number("require_advantage", require_advantage, above=0, at_most=1, remedy="give a ceiling, e.g. 0.1")
    if (require_advantage is None) != (release is None):
        raise InputError(
            "require_advantage" if release is None else "release",
            require_advantage if release is None else release,
            requirement="must come with `release`, which says what the ceiling is for: no ceiling can be proven of all "
            "probabilities"
            if release is None
            else "must come with `require_advantage`: all releases are audited",
            remedy="name what you release, 'class' or 'digit'" if release is None else "give a ceiling, e.g. 0.1",
        )


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


def _changes(found: RecordAudit) -> tuple[Change, ...]:
    label, _, everything = found.comparisons
    if everything.attacks[0].value < SMALL:
        return (PRIVATE,)
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
        PRIVATE,
    )
