"""Read a table of vectors: some rows fix a code, the codes of the others are counted, and samples are attacked."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...report.timing import Timed
from ...runtime import tables
from ..codes import matrix, own_rows
from ..sample import Sample
from ..tally import Tally
from ..vectors import Seen, code_for, fingerprints
from .inputs import Read, check_labels, check_size, sliced
from .options import Task

_SECONDS, _SECONDS_PER_CELL = 15.0, 3e-7
"""What is left to do once the rows that fix the code are read: attacks and the page, and each number of the others."""


def read_vectors(task: Task, advance: Timed) -> Read:
    """Fix the code on rows of its own, count the codes of the others, and keep samples of codes and vectors."""
    advance("counting rows")
    source = _source(task)
    rows = source.rows()
    own = np.zeros(rows, dtype=bool)
    own[own_rows(rows, task.seed)] = True
    advance("reading the rows that fix the code")
    kept, prints, done, width = [], [], 0, 0
    for named, vectors, _ in source.parts():
        here = own[done : done + len(vectors)]
        vectors = matrix("output", vectors)
        kept.append((named[task.secret][here], vectors[here]))
        prints.append(fingerprints(vectors))
        done, width = done + len(vectors), vectors.shape[1]
    advance.expect(_SECONDS + rows * width * _SECONDS_PER_CELL)
    advance("fixing the code")
    secrets = np.concatenate([one for one, _ in kept])
    code = code_for(secrets, np.concatenate([one for _, one in kept]), code=str(task.code), seed=task.seed)
    del kept
    seen = Seen(code, attack_rows=task.attack_rows, seed=task.seed)
    menu = Sample(task.menu_rows, task.seed)
    kinds = ("numbers",) * len(task.outputs)
    counted = Read(tallies={}, sample=seen.codes, kinds=kinds, seen=seen, menu=menu)
    counted.own_rows, counted.different = int(own.sum()), len(np.unique(np.concatenate(prints)))
    done = 0
    for named, vectors, share in source.parts():
        rest: NDArray[np.bool_] = ~own[done : done + len(vectors)]
        done += len(vectors)
        left = {name: one[rest] for name, one in named.items()}
        vectors = matrix("output", vectors[rest])
        secrets, cells = seen.add(left[task.secret], vectors)
        menu.add(secrets, [vectors, *([] if task.target is None else [left[task.target]])], None)
        for value, part in sliced(left, task.slices):
            counted.tallies.setdefault(value, Tally()).add(secrets[part], cells[part])
        check_size(task, counted)
        advance(f"{min(100, round(100 * share))} % of the table coded")
    check_labels(task, counted)
    return counted


def read_matrix(task: Task, advance: Timed) -> Read:
    """Count and sample whole vectors, which need noise to be certified."""
    advance("counting rows")
    source = _source(task)
    rows = source.rows()
    kept = Read(tallies={}, sample=Sample(task.attack_rows, task.seed), kinds=("numbers",))
    kept.menu = Sample(task.menu_rows, task.seed)
    for named, part, share in source.parts():
        vectors, secrets = matrix("output", part), named[task.secret]
        for value, here in sliced(named, task.slices):
            kept.tallies.setdefault(value, task.tally(rows)).add(secrets[here], vectors[here])
        check_size(task, kept)
        kept.sample.add(secrets, list(vectors.T), None)
        kept.menu.add(secrets, [*vectors.T, *([] if task.target is None else [named[task.target]])], None)
        advance(f"{min(100, round(100 * share))} % of the table read")
    check_labels(task, kept)
    return kept


def _source(task: Task) -> tables.Matrices:
    columns = [task.secret, *(one for one in (task.slices, task.target) if one is not None)]
    return tables.Matrices(task.table, columns, task.outputs, name="table")
