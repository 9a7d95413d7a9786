"""Models trained again and again on random halves of the records, and what each says about every record."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import InputError
from ..runtime import private_files, run_folder, workers
from ..runtime.user_functions import UserFunction
from .classifiers import chances_of, records_of

LEAST_MODELS = 4
"""With fewer there are records that all models were trained on, or none."""

_ANSWERS = 4  # numbers that a model gives for a record
_OWN_STREAM = 0x5AD0  # coins must not repeat the draws of a factory that uses the same seed


@dataclass(frozen=True, kw_only=True, eq=False)
class Retrained:
    """What every model says about every record, models × records.

    Attributes
    ----------
    inside
        Whether the model was trained on the record: a fair coin for each model and record.
    chances
        The probability that the model gives to the record's own label.
    predicted
        The class that the model predicts, as the number of its place among all labels in their order.
    largest
        The probability of that class.
    labels
        The place of each record's own label.
    softened
        The probability of the record's own label at a temperature of 2, where logits are half as large; None where it
        is not known.
    inputs
        The records themselves as rows of numbers, for attacks that read them; None where they are not at hand.
    """

    inside: NDArray[np.bool_]
    chances: NDArray[np.float64]
    predicted: NDArray[np.int64]
    largest: NDArray[np.float64]
    labels: NDArray[np.int64]
    softened: NDArray[np.float64] | None = None
    inputs: NDArray[np.float64] | None = None

    @property
    def classes(self) -> int:
        """How many labels there are."""
        return int(self.labels.max()) + 1

    @property
    def right(self) -> NDArray[np.bool_]:
        """Whether each model predicts each record's own label."""
        return np.equal(self.predicted, self.labels)

    def part(self, models: slice | NDArray[np.bool_]) -> Retrained:
        """What some of the models say."""
        return Retrained(
            inside=self.inside[models],
            chances=self.chances[models],
            predicted=self.predicted[models],
            largest=self.largest[models],
            labels=self.labels,
            softened=None if self.softened is None else self.softened[models],
            inputs=self.inputs,
        )


def retrain(
    factory: Callable[[Any, Any], Any],
    X: Any,  # noqa: N803 — scikit-learn's name
    y: Any,
    *,
    models: int = 64,
    engine: str = "local",
    out: Path | str | None = None,
    resume: bool = False,
    seed: int = 0,
    advance: Callable[[str], None] = lambda _: None,
) -> Retrained:
    """Train models on random halves of the records, and ask each about all of them.

    Parameters
    ----------
    factory
        A function that trains a model, factory(X, y), and returns a fitted classifier of scikit-learn (with
        `predict_proba`) or a torch module that returns a logit for each of the labels 0, 1 …. All that it learns must
        come from what it is given, and nothing may be kept from one training to the next.
    X
        The records, a row each.
    y
        Their labels, which must be the classes that models know.
    models
        How many models are trained.
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
    What each model says about each record.

    Raises
    ------
    InputError
        Where records and labels do not fit together, or a training fails.
    """
    count = validate.whole("models", models, at_least=LEAST_MODELS, remedy="train 64 or more")
    validate.whole("seed", seed, at_least=0, remedy="use 0")
    inputs, labels = records_of("X, y", (X, y))
    inside = np.random.default_rng([seed, _OWN_STREAM]).random((count, len(labels))) < 0.5
    said = np.full((count, _ANSWERS, len(labels)), np.nan)
    place = None if out is None else Path(out)
    if place is not None:
        private_files.closed(place)  # whoever reads what models say can tell members
        mark = {
            "factory": _identity(factory),
            "records": run_folder.digest(inputs.tobytes() + repr(labels.tolist()).encode()),
            "shape": [str(inputs.dtype), *inputs.shape],
            "models": count,
            "seed": seed,
        }
        run_folder.claim(place, mark, resume=resume)
        for number in range(count):
            if _kept(place, number).exists():
                said[number] = run_folder.array(_kept(place, number), (_ANSWERS, len(labels)), _never)
    left = [number for number in range(count) if np.isnan(said[number]).any()]
    with private_files.enclosed(place), workers.open_workers(engine) as crowd:
        advance(f"training {len(left)} models")
        for number, answers in _trained(crowd, factory, (inputs, labels), inside, left):
            said[number] = answers
            if place is not None:
                run_folder.array(_kept(place, number), answers.shape, functools.partial(np.asarray, answers))
            advance(f"{count - int(np.isnan(said).any(axis=(1, 2)).sum())} of {count} models trained")
    return Retrained(
        inside=inside,
        chances=said[:, 0],
        predicted=said[:, 1].astype(np.int64),
        largest=said[:, 2],
        labels=np.unique(labels, return_inverse=True)[1],
        softened=said[:, 3],
        inputs=_numbers(inputs),
    )


def different(inputs: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.int64]:
    """The places of records that no earlier one equals."""
    first: dict[tuple[bytes, Any], int] = {}
    rows = inputs + 0 if inputs.dtype.kind in "fc" else np.ascontiguousarray(inputs)  # −0 becomes 0, which it equals
    for place, (row, label) in enumerate(zip(rows, labels.tolist(), strict=True)):
        first.setdefault((row.tobytes(), label), place)
    return np.array(list(first.values()))


def _numbers(inputs: NDArray[Any]) -> NDArray[np.float64] | None:
    """Each record as a row of finite numbers; None if it is anything else."""
    if inputs.dtype.kind not in "biuf":
        return None
    rows = inputs.reshape(len(inputs), -1).astype(np.float64)
    return rows if np.isfinite(rows).all() else None


def _trained(
    crowd: workers.Workers,
    factory: Callable[[Any, Any], Any],
    records: tuple[NDArray[Any], NDArray[Any]],
    inside: NDArray[np.bool_],
    left: list[int],
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    def job(number: int) -> tuple[Any, ...]:
        return factory, *records, inside[number]

    with contextlib.closing(crowd.outcomes(_answers, left, job)) as outcomes:
        for number, outcome in outcomes:
            if isinstance(outcome, workers.Failure):
                raise InputError(
                    "factory",
                    f"one that raised {outcome.kind}",
                    requirement="must train a classifier on any half of the records, and answer about all of them",
                    remedy="try it on a random half; every class needs enough records to be in each half",
                )
            yield number, outcome


def _answers(
    factory: Callable[[Any, Any], Any], inputs: NDArray[Any], labels: NDArray[Any], chosen: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """By a model trained on those chosen: each record's own probability, the class predicted, its probability, softer.

    The last is the first at a temperature of 2.
    """
    known, own = np.unique(labels, return_inverse=True)
    found = chances_of(factory(inputs[chosen], labels[chosen]), inputs, known)
    places, roots = np.arange(len(labels)), np.sqrt(found)
    softer = roots[places, own] / np.maximum(roots.sum(axis=1), 1e-300)
    return np.stack([found[places, own], found.argmax(axis=1), found.max(axis=1), softer])


def _identity(factory: Callable[[Any, Any], Any]) -> str:
    """What a run that goes on must have in common: the source of the user's file, or the function with all it holds."""
    if isinstance(factory, UserFunction):
        return f"{factory.function} of {run_folder.digest(factory.source.encode())}"
    return run_folder.digest(workers.packed(factory))


def _kept(folder: Path, number: int) -> Path:
    return folder / f"model-{number:05d}.npy"


def _never() -> NDArray[np.float64]:
    raise AssertionError
