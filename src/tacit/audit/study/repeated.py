"""A table of what models, each trained on a random half of the records, say about every record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ...report import Change, Report
from ...report.timing import Timed
from ...runtime import tables
from ..coins import contradiction
from ..record_audit import LEAST_MODELS, audited_outputs, claim
from .options import Task, check
from .record_report import PRIVATE, record_page

_MOST_ROWS = 5_000_000


def audit_repeated(
    task: Task,
    *,
    record: str | Sequence[str],
    model: str | None,
    trained_with: tuple[float, float] | None,
    alone: bool,
    advance: Timed,
) -> Report:
    """The report of `audit_file` where records are named: the audit of `audit_records`, from a table.

    `alone` says that there is one secret.
    """
    table, secret, output = task.table, task.secret, task.outputs
    record = (record,) if isinstance(record, str) else tuple(record)
    check(task)
    claimed = claim(trained_with, 0.0)
    if model is None or not record or len(output) != 1 or not alone:
        raise InputError(
            "record",
            ", ".join(record),
            requirement="must come with `model`, one `secret` and one `output`, and `model` and `trained_with` with it",
            remedy="name the columns that say which record and which model a row is about",
        )
    given: dict[str, object] = {"noise": task.noise, "noise_added": task.noise_added, "slices": task.slices}
    given |= {"group": task.group, "secret_range": task.secret_range}
    given |= {"assume_max_slope": task.lipschitz, "assume_one_direction": task.monotone or None}
    given |= {"code": task.code, "release_code": task.release_code, "menu": task.menu or None, "target": task.target}
    for name, value in given.items():
        if value is not None:
            raise InputError(
                name, value, requirement="must come without `record`", remedy="release the output as the table has it"
            )
    columns = [*record, model, secret, output[0]]
    if len(set(columns)) < len(columns):
        raise InputError(
            "`record`, `model`, `secret` and `output`",
            ", ".join(columns),
            requirement="must name different columns",
            remedy="name each column once",
        )
    advance("reading the table")
    read = _read(table, columns, advance)
    names, records = _named([read[name] for name in record])
    labels, models = _named([read[model]])
    if len(labels) < LEAST_MODELS:
        raise InputError(
            f"column {model!r} of `table`",
            len(labels),
            requirement=f"must name {LEAST_MODELS} models or more",
            remedy="train 64 or more, each on a random half",
        )
    members, yes = _members(read[secret], secret, task.positive)
    places = models * len(names) + records
    order = np.argsort(places, kind="stable")
    if len(places) != len(labels) * len(names) or (np.diff(places[order]) == 0).any():
        raise InputError(
            "table",
            f"{len(places)} rows for {len(names)} records and {len(labels)} models",
            requirement="must have one row for every record and every model",
            remedy="ask each model about all records, those that it was not trained on too",
        )
    shape = (len(labels), len(names))
    inside = members[order].reshape(shape)
    against = contradiction(inside)
    if against:
        raise InputError(
            f"column {secret!r} of `table`",
            against,
            requirement="must be drawn by a fair coin for every record and model, independently, which this was not",
            remedy="train each model on records that are drawn anew, each with probability 1/2",
        )
    outputs = read[output[0]][order].reshape(shape)
    copies = _copies(outputs)
    if copies:
        raise InputError(
            f"column {', '.join(map(repr, record))} of `table`",
            f"{copies} that every model answers as it answers another one",
            requirement="must name records that differ, since a copy would tell that the record is there",
            remedy="leave the copies out, and train again without them",
        )
    advance("attacking")
    found = audited_outputs(
        outputs,
        inside,
        name=f"column {output[0]!r}",
        delta=0.0,
        failure_probability=task.failure_probability,
        claimed=claimed,
    )
    done = (
        f"The table has what {found.models} models say about each of {found.records} records, and half of the "
        f"models are attacked with the others; {secret} = {yes!r} is taken to say that the model was trained on the "
        "record. It rests on your word that each model was trained on a half of the "
        "records that a fair coin drew, independently for every record and model, which the table does not contradict, "
        "and that no two records are copies of each other."
    )
    return record_page(
        found,
        command="audit",
        title=f"What column {output[0]!r} of {table.name} tells whoever holds the record about {secret}",
        done=done,
        sees=(output[0],),
        changes=(
            Change(
                what="Release less: round the output, or release the predicted class alone, and audit that.",
                price="what is released gets coarser; the model stays as it is.",
            ),
            PRIVATE,
        ),
        names=names,
        pictures=task.pictures,
        require_advantage=task.require_advantage,
    )


def _read(table: Path, columns: Sequence[str], advance: Timed) -> dict[str, NDArray[Any]]:
    """The columns, all rows of the table; of rows that are equal there is one, which is found out later."""
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in columns}
    rows = 0
    for part, counts, share in tables.batches(table, columns, name="table"):
        rows += len(part[columns[0]])
        if counts is not None and (counts > 1).any():
            raise InputError(
                "table",
                "rows that are equal",
                requirement="must have one row for every record and every model",
                remedy="leave out the copies",
            )
        if rows > _MOST_ROWS:
            raise InputError(
                "table",
                f"more than {_MOST_ROWS} rows",
                requirement=f"must have {_MOST_ROWS} rows at most where `record` is given",
                remedy="audit fewer of the records, chosen before their outputs are seen",
            )
        for name in columns:
            parts[name].append(part[name])
        advance(f"{min(100, round(100 * share))} % of the table read")
    return {name: np.concatenate(one) for name, one in parts.items()}


def _named(columns: Sequence[NDArray[Any]]) -> tuple[list[str], NDArray[np.int64]]:
    """What is named by several columns together: the names, and which of them each row has."""
    places = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, which = np.unique(column, return_inverse=True)
        places = np.unique(places * len(values) + which, return_inverse=True)[1]
    first = np.unique(places, return_index=True)[1]
    return [", ".join(str(column[row]) for column in columns) for row in first.tolist()], places


def _copies(outputs: NDArray[Any]) -> int:
    """How many records have the outputs of an earlier one in all models, where these are hardly ever the same."""
    seen: set[bytes] = set()
    found = 0
    for answers in outputs.T:
        if 2 * len(np.unique(answers)) > len(answers):
            found += answers.tobytes() in seen
            seen.add(answers.tobytes())
    return found


def _members(column: NDArray[Any], name: str, positive: str | None) -> tuple[NDArray[np.bool_], Any]:
    """Which rows are about a member, and the value that says so: the one that sorts last, or the one that is named."""
    values = np.unique(column).tolist()
    if len(values) != 2:
        raise InputError(
            f"column {name!r} of `table`",
            f"{len(values)} values",
            requirement="must take exactly two values",
            remedy="say whether the model was trained on the record, e.g. 1 and 0",
        )
    if positive is None:
        return np.asarray(column == values[1]), values[1]
    wanted = [value for value in values if str(value).casefold() == positive.casefold()]
    if len(wanted) != 1:
        raise InputError(
            "positive",
            positive,
            requirement=f"must be a value of column {name!r}",
            remedy="write it as the file does",
        )
    return np.asarray(column == wanted[0]), wanted[0]
