"""Read the tables of a run, and turn them into numbers by one rule that depends on public records alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from ...core.near import did_you_mean
from ...runtime import files, tables
from ..columns import Columns, numbers, texts
from ..encoders import ImageEncoder, TextEncoder
from ..overlap import require_other_rows
from .options import OTHERS, Task

_MOST_CLASSES = 20
"""A column with more labels than this, and than a tenth of the records, holds no classes."""

_ORDERED = 10
"""The number of steps in one direction that cannot be chance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Records:
    """The records of a run as numbers."""

    columns: Columns
    rows: NDArray[np.int64]
    """The place of each private record in its file."""
    records: NDArray[np.float64]
    labels: NDArray[Any]
    classes: NDArray[Any] | None
    """The classes named by `classes` or by the labels of `labelled_public`; None if they are to be found."""
    ids: list[str] | None
    public: NDArray[np.float64] | None
    test: tuple[tables.Table, list[str]] | None
    proposer: tuple[NDArray[np.float64], NDArray[Any]] | None
    """Labelled records that are not private, for a model that proposes labels."""
    unknown: dict[str, float]
    """The share of private records in each column for which the public rule has no value. Private."""
    unused: tuple[str, ...]
    """The columns of the public table that were not used."""


def read(task: Task, advance: Callable[[str], None] = lambda _: None) -> Records:
    """Read all tables of the task. The rule depends on the public table, or on the private one with --labels-only.

    `advance` is called with a line about the progress of encoders.
    """
    for name, path in (("private", task.private), *task.others):
        files.existing(path, name)  # before anything is said about packages that read it
    rule = Columns(encoders=_encoders(task))
    private = _read(task, task.private, "private")
    if task.public is None:
        _no_row_number(private, task)
    rows = _order(task, len(next(iter(private.values()))))
    private = {name: column[rows] for name, column in private.items()}
    labels = _labels(_taken(private, task.label, "label"), "private", task.label)
    ids = None if task.ids is None else _owners(task.ids, private)
    public, unused = None, []
    others: list[tuple[str, tables.Table]] = []
    if task.public is not None:
        public = _read(task, task.public, "public")
        unused = [name for name in (task.label, task.ids) if name is not None and public.pop(name, None) is not None]
    known = None if task.labelled_public is None else _labelled(task, task.labelled_public, "labelled_public", labels)
    classes = _classes(task, labels, [] if known is None else known[1])
    among = sorted(set(labels)) if classes is None else classes  # for what only the owner is told
    if public is not None:
        others.append(("public", public))
    test = None if task.test is None else _labelled(task, task.test, "test", among)
    if test is not None:
        others.append(("test", test[0]))
    if known is not None:
        others.append(("labelled_public", known[0]))
    compared = {name: _compared(rule, table, name) for name, table in (("private", private), *others)}
    columns = rule.fit(private if public is None else public, advance=advance)
    if not len(columns.get_feature_names_out()):
        raise InputError("public", columns.names_, requirement="must have columns to learn from", remedy="add features")
    for option, table in others[public is not None :]:
        _same_columns(table, columns, option)
    proposer = None
    if known is not None and classes is not None:
        given, said = known
        proposer = (
            columns.transform(given)[np.isin(said, classes)],
            typed([text for text in said if text in classes], classes),
        )
    if public is not None:
        _same_columns(private, columns, "private")
    if not task.allow_overlap:
        _require_others(task, compared, others)
    return Records(
        columns=columns,
        rows=rows,
        records=columns.transform(private, advance=advance),
        labels=np.array(labels) if classes is None else typed(labels, classes),
        classes=None if classes is None else typed(classes, classes),
        ids=ids,
        public=None if public is None else columns.transform(public),
        test=test,
        proposer=proposer,
        unknown=columns.unknown(private),
        unused=tuple(unused),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """The records of a run that learns numbers, or several labels."""

    columns: Columns
    records: NDArray[np.float64]
    values: NDArray[np.float64]
    """What is learned: a column of numbers, or one of 0 and 1 for each label."""
    ids: list[str] | None
    public: NDArray[np.float64]
    test: tuple[tables.Table, NDArray[np.float64]] | None
    unknown: dict[str, float]
    """The share of private records in each column for which the public rule has no value. Private."""
    unused: tuple[str, ...]
    """The columns of the public table that were not used."""


def read_numbers(task: Task, public_path: Path, advance: Callable[[str], None]) -> Numbers:
    """Read all tables of a task that learns numbers or several labels. The rule depends on the public table alone."""
    for name, path in (("private", task.private), *task.others):
        files.existing(path, name)  # before anything is said about packages that read it
    private = _read(task, task.private, "private")
    values = _values(task, private, "private")
    ids = None if task.ids is None else _owners(task.ids, private)
    public = _read(task, public_path, "public")
    taken = (*task.labels, *([] if task.ids is None else [task.ids]))
    unused = tuple(name for name in taken if public.pop(name, None) is not None)
    rule = Columns(encoders=_encoders(task))
    columns = rule.fit(public, advance=advance)
    if not len(columns.get_feature_names_out()):
        raise InputError("public", columns.names_, requirement="must have columns to learn from", remedy="add features")
    _same_columns(private, columns, "private")
    others, test = [("public", public)], None
    if task.test is not None:
        table = _read(task, task.test, "test")
        test = table, _values(task, table, "test")
        table.pop(task.ids or "", None)
        _same_columns(table, columns, "test")
        others.append(("test", table))
    if not task.allow_overlap:
        tables_compared = [("private", private), *others]
        _require_others(task, {name: _compared(columns, table, name) for name, table in tables_compared}, others)
    return Numbers(
        columns=columns,
        records=columns.transform(private, advance=advance),
        values=values,
        ids=ids,
        public=columns.transform(public),
        test=test,
        unknown=columns.unknown(private),
        unused=unused,
    )


def _values(task: Task, table: tables.Table, option: str) -> NDArray[np.float64]:
    """The columns to learn, taken out of the table."""
    found = []
    for label in task.labels:
        if label not in table:  # before others are taken, and looked at
            _taken(table, label, "label", of=option)
    for label in task.labels:
        column = _taken(table, label, "label", of=option)
        if task.label_range is not None:
            read, what = numbers(column), "a number"
        else:
            read, what = np.array([_YES_NO.get(text, np.nan) for text in _lowered(column)]), "yes or no, 1 or 0"
        if not np.isfinite(read).all():
            raise InputError(
                f"column {label!r} of `{option}`",
                "a record without one",  # but not which, as it is private
                requirement=f"must hold {what} for every record",
                remedy="leave such records out, or write it in that way",
            )
        found.append(read)
    return np.column_stack(found)


_YES_NO = {"yes": 1.0, "true": 1.0, "1": 1.0, "no": 0.0, "false": 0.0, "0": 0.0}


def _lowered(column: NDArray[Any]) -> list[str]:
    return [(text or "").lower() for text in texts(column)]


def _owners(name: str, private: tables.Table) -> list[str]:
    """Whose each record is."""
    found = texts(_taken(private, name, "ids"))
    if None in found:
        raise InputError(
            f"column {name!r} of `private`",
            "a record without a name",
            requirement="must name the person of every record",
            remedy="fill it in",
        )
    return [str(owner) for owner in found]


def _encoders(task: Task) -> dict[str, TextEncoder | ImageEncoder] | None:
    """The encoder of each column that has one."""
    folder, weights = (None if path is None else str(path) for path in (task.text_encoder, task.image_weights))
    found: dict[str, TextEncoder | ImageEncoder] = dict.fromkeys(task.text, TextEncoder(folder))
    return found | dict.fromkeys(task.image, ImageEncoder(task.image_encoder, weights)) or None


def _read(task: Task, path: Path, name: str) -> tables.Table:
    """A table, with images by their whole paths; those that are relative begin at the folder of the table."""
    found = tables.read(path, name=name)
    for option, columns in (("text", task.text), ("image", task.image)):
        for column in columns:
            if column not in found:
                raise InputError(
                    option,
                    column,
                    requirement=f"must name one of the {len(found)} columns of `{name}`",
                    remedy=did_you_mean(column, found, "check its name"),
                )
    for column in task.image:
        places = np.empty(len(found[column]), dtype=object)
        places[:] = [None if place is None else str(path.parent / place) for place in texts(found[column])]
        found[column] = places
    return found


def _require_others(task: Task, compared: dict[str, tables.Table], others: list[tuple[str, tables.Table]]) -> None:
    """Refuse records of another table that are private ones, too."""
    for option, _ in others:
        require_other_rows(
            option,
            compared[option],
            compared["private"],
            called="`private`",
            remedy=OTHERS,
            unlimited=(*task.text, *task.image),
        )


def _compared(columns: Columns, table: tables.Table, name: str) -> tables.Table:
    """A table as equal rows are found in it; its images are looked at."""
    found = dict(table)
    for column, encoder in (columns.encoders or {}).items():
        found[column] = encoder.compared(table[column], called=f"an image of `{name}`")
    return found


def _no_row_number(private: tables.Table, task: Task) -> None:
    """Refuse a column that counts up or down the file: it would publish the order of the file, which may tell labels.

    A column of 11 random numbers or more is in such an order with a probability below one in ten million.
    """
    for name, column in private.items():
        with np.errstate(over="ignore", invalid="ignore"):  # infinite ones are no steps
            steps = np.diff(numbers(column))
        if name not in (task.label, task.ids) and len(steps) >= _ORDERED and ((steps > 0).all() or (steps < 0).all()):
            raise InputError(
                f"column {name!r} of `private`",
                "numbers in the order of the file",
                requirement="must not number the records, as it is published, and the order of a file may tell labels",
                remedy="leave it out; if it says nothing about labels, shuffle the records",
            )


def _order(task: Task, count: int) -> NDArray[np.int64]:
    """The order in which the private records are used: with --labels-only, by everything but labels and ids.

    The order of the file may tell labels, and it would show in the order of what is published, and in the last digits
    of means. Records that are equal except for labels and ids may be in any order.
    """
    if task.public is not None:
        return np.arange(count)
    hidden = {task.label, *([] if task.ids is None else [task.ids])}
    held = tables.contents(task.private, without=hidden, name="private")
    return np.array(sorted(range(count), key=held.__getitem__), dtype=np.int64)


def _labelled(task: Task, path: Path, option: str, classes: Sequence[str]) -> tuple[tables.Table, list[str]]:
    """Other labelled records."""
    found = _read(task, path, option)
    labels = _labels(_taken(found, task.label, "label", of=option), option, task.label)
    if not set(labels) & set(classes):
        raise InputError(
            f"column {task.label!r} of `{option}`",
            labels[0],
            requirement="must hold the classes of `private`",
            remedy="write labels alike in both files",
        )
    found.pop(task.ids or "", None)
    return found, labels


def _taken(table: tables.Table, column: str, option: str, of: str = "private") -> NDArray[Any]:
    if column not in table:
        raise InputError(
            option,
            column,
            requirement=f"must name one of the {len(table)} columns of `{of}`",
            # Not all names: in a file without a first line of names, they are a record.
            remedy=did_you_mean(column, table, "check its name"),
        )
    return table.pop(column)


def _labels(column: NDArray[Any], name: str, label: str) -> list[str]:
    found = texts(column)
    if None in found:
        raise InputError(
            f"column {label!r} of `{name}`",
            "a record without one",
            requirement="must hold a label for every record",
            remedy="leave such records out",
        )
    return [str(text) for text in found]


def _same_columns(table: tables.Table, columns: Columns, name: str) -> None:
    lacking = [column for column in columns.names_ if column not in table]
    beyond = [column for column in table if column not in columns.names_]
    if lacking or beyond:
        # Where a column is missing, the other names may be a record, in a file without a first line of names.
        got = f"none called {', '.join(lacking)}" if lacking else f"also {', '.join(beyond)}"
        raise InputError(
            f"the columns of `{name}`",
            got,
            requirement="must be those of the public records, and the label",
            remedy="rename, add or leave out columns in one of the files",
        )


def _classes(task: Task, labels: Sequence[str], proposed: Sequence[str]) -> list[str] | None:
    """The classes that were named, else those of the proposer's records; None if they have to be found.

    Labels that cannot be classes are refused in any case, before anything is paid to find them.
    """
    column = f"column {task.label!r} of `private`"
    if task.classes is None and not proposed:
        found, name, shown = set(labels), column, "one class"
        if len(found) > max(_MOST_CLASSES, len(labels) // 10):
            raise InputError(
                column,
                "almost as many labels as records",
                requirement="must name classes",
                remedy="group its values into a few, or name another column; if it holds numbers to be learned, give "
                "`label_range`",
            )
    else:
        name, told = "labelled_public", list(proposed)
        if task.classes is not None:
            name, told = "classes", [text for text in texts(np.array(task.classes.split(","), dtype=object)) if text]
        found, shown = set(told), ", ".join(sorted(set(told)))
        if len(found) > 1 and not found.issuperset(labels):
            raise InputError(
                column,
                "some other label",  # but not which, as labels are private
                requirement=f"must hold no other labels than `{name}`",
                remedy="list every label that may occur in `classes`, e.g. yes,no",
            )
    if len(found) < 2:
        raise InputError(
            name,
            shown,
            requirement="must hold two classes or more",
            remedy="list all that may occur in `classes`, e.g. yes,no",
        )
    return None if name == column else sorted(found)


def typed(labels: Sequence[str], classes: Sequence[str]) -> NDArray[Any]:
    """Labels as whole numbers if all classes are whole numbers, else as text."""
    whole = all(re.fullmatch(r"0|-?[1-9]\d{0,17}", text) for text in classes)
    return np.array(labels, dtype=np.int64 if whole else None)
