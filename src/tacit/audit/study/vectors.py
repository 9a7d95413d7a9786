"""Read a table of vectors or texts: some rows fix a code, codes of the others are counted, samples are attacked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...report.timing import Timed
from ...runtime import tables
from ..codes import matrix, own_rows
from ..groups import copied
from ..sample import Sample
from ..tally import Tally
from ..terms import at_rows
from ..vectors import Seen, Vectors, code_for, fingerprints
from .inputs import Read, check_labels, check_size, sliced
from .options import Task

_SECONDS, _SECONDS_PER_CELL, _CELLS_OF_A_TEXT = 15.0, 3e-7, 1000
"""What is left to do once the rows that fix the code are read: attacks and the page, and each number of the others."""


def read_vectors(task: Task, advance: Timed) -> Read:
    """Fix the code on rows of its own, count the codes of the others, and keep samples of codes and vectors."""
    advance("counting rows")
    source = _source(task)
    rows = source.rows()
    own = np.zeros(rows, dtype=bool)
    own[own_rows(rows, task.seed)] = True
    advance("reading the rows that fix the code")
    source.allow_texts(own)
    known, kept, prints, done = [], [], [], 0
    for named, part, _ in source.parts():
        here = own[done : done + len(named[task.secret])]
        vectors = part if isinstance(part, list) else matrix("output", part)
        known.append(named[task.secret][here])
        kept.append(at_rows(vectors, here))
        prints.append(fingerprints(vectors))
        done += len(here)
    advance.expect(_SECONDS + rows * _width(vectors) * _SECONDS_PER_CELL)
    advance("fixing the code")
    code = code_for(np.concatenate(known), _joined(kept), code=str(task.code), seed=task.seed)
    del kept
    seen = Seen(code, attack_rows=task.attack_rows, seed=task.seed)
    menu = Sample(task.menu_rows, task.seed)
    kinds = ("numbers",) * len(task.outputs)
    if code.terms is not None:
        kinds = tuple("numbers" if one is None else "text" for one in code.terms.buckets)
        menu = Sample(0, task.seed)  # of what could be released instead of numbers
    counted = Read(tallies={}, sample=seen.codes, kinds=kinds, seen=seen, menu=menu)
    counted.own_rows, counted.different = int(own.sum()), len(np.unique(np.concatenate(prints)))
    counted.copied = _copied(prints)
    done = 0
    for named, part, share in source.parts():
        rest: NDArray[np.bool_] = ~own[done : done + len(named[task.secret])]
        done += len(rest)
        left = {name: one[rest] for name, one in named.items()}
        vectors = at_rows(part, rest)
        secrets, cells = seen.add(left[task.secret], vectors)
        if not isinstance(vectors, list):
            target = [] if task.target is None else [left[task.target]]
            menu.add(secrets, [matrix("output", vectors), *target], None)
        for value, here in sliced(left, task.slices):
            counted.tallies.setdefault(value, Tally()).add(secrets[here], cells[here])
        check_size(task, counted)
        advance(f"{min(100, round(100 * share))} % of the table coded")
    check_labels(task, counted)
    return counted


def read_matrix(task: Task, advance: Timed) -> Read:
    """Count and sample whole vectors, which need noise to be certified."""
    advance("counting rows")
    source = _source(task)
    rows = source.rows()
    kinds = ("numbers",) * len(task.outputs)
    kept = Read(tallies={}, sample=Sample(task.attack_rows, task.seed), kinds=kinds)
    kept.menu = Sample(task.menu_rows, task.seed)
    prints = []
    for named, part, share in source.parts():
        vectors, secrets = matrix("output", part), named[task.secret]
        prints.append(fingerprints(vectors))
        for value, here in sliced(named, task.slices):
            kept.tallies.setdefault(value, task.tally(rows)).add(secrets[here], vectors[here])
        check_size(task, kept)
        kept.sample.add(secrets, list(vectors.T), None)
        kept.menu.add(secrets, [*vectors.T, *([] if task.target is None else [named[task.target]])], None)
        advance(f"{min(100, round(100 * share))} % of the table read")
    check_labels(task, kept)
    kept.copied = _copied(prints)
    return kept


def _width(vectors: Vectors) -> int:
    """About how many numbers a row has; those of a text are counted, which takes longer."""
    if not isinstance(vectors, list):
        return int(vectors.shape[1])
    return sum(_CELLS_OF_A_TEXT if one.dtype.kind == "O" else 1 for one in vectors)


def _joined(parts: list[Vectors]) -> Vectors:
    """The rows of all parts."""
    columns = [part for part in parts if isinstance(part, list)]
    if not columns:
        return np.concatenate([part for part in parts if not isinstance(part, list)])
    return [np.concatenate(each) for each in zip(*columns, strict=True)]


def _copied(prints: list[NDArray[np.uint64]]) -> tuple[int, int] | None:
    """Whether vectors look copied."""
    return copied(np.unique(np.concatenate(prints), return_counts=True)[1])


def _source(task: Task) -> tables.Matrices:
    columns = [task.secret, *(one for one in (task.slices, task.target) if one is not None)]
    return tables.Matrices(task.table, columns, task.outputs, name="table")
