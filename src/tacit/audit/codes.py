"""Codes of vectors: functions from many numbers to a few cells, fixed on rows that are not certified."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.errors import InputError
from ..runtime.files import plain, write_whole
from .attempt import LEARNER_NAMES
from .learners import LEARNERS, fitting
from .terms import BUCKETS, Terms, chosen, with_texts

CODES = ("auto", "kmeans", "tree", "attack")
CELLS = {"kmeans": 64, "tree": 32, "attack": 16}
"""How many cells a code has unless it is told."""
LEAST_ROWS = 30
"""Of each class, among the rows that fix a code."""

_MOST_CELLS = 4096
_ROWS_OF_A_CELL = 20  # that fix the code, at least
_FIT = 2 / 3  # of the rows that fix a code; the others say how much it shows
_AT_ONCE = 2**14  # rows
_FARTHEST = 1e150
_FORMAT, _FORMAT_OF_TEXTS = "tacit codebook 1", "tacit codebook 2"

_Whole = NDArray[np.int64]
_Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Code(ABC):
    """A function from vectors to cells: `code(vectors)` are the cells of the rows of a matrix, whole numbers from 0.

    Where it was made for texts, or for texts and numbers, it takes such columns instead of a matrix.

    Attributes
    ----------
    columns
        How many numbers a vector has.
    cells
        How many cells there are.
    shown
        The advantage of the best rule by cell, fitted to some of the rows that fixed the code and measured on the
        others: an estimate, not a limit.
    terms
        What makes vectors of texts; None where there are none.
    """

    columns: int
    cells: int
    shown: float = 0.0
    terms: Terms | None = field(default=None, compare=False)

    def __call__(self, vectors: object) -> _Whole:
        """The cell of each row of a matrix, or of each text."""
        found = matrix("vectors", vectors) if self.terms is None else vectors_of("vectors", vectors)
        return self.cells_of(self.numbers("vectors", found))

    def numbers(self, name: str, vectors: _Matrix | list[NDArray[Any]]) -> _Matrix:
        """The matrix of numbers that the code looks at; `name` is that of the vectors in error messages."""
        if self.terms is not None:
            vectors = self.terms(vectors if isinstance(vectors, list) else list(vectors.T))
        return within(matrix(name, vectors))

    def cells_of(self, rows: _Matrix) -> _Whole:
        """The cell of each row of a matrix that `numbers` made."""
        if rows.shape[1] != self.columns:
            raise InputError(
                "vectors",
                f"{rows.shape[1]} columns",
                requirement=f"must have the {self.columns} columns of the vectors that the code was made for",
                remedy="pass the columns in the same order",
            )
        parts = [self._cells(rows[start : start + _AT_ONCE]) for start in range(0, len(rows), _AT_ONCE)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    @abstractmethod
    def _cells(self, rows: _Matrix) -> _Whole: ...

    @property
    @abstractmethod
    def in_words(self) -> str:
        """How the cells were made."""

    def save(self, path: Path | str) -> None:
        """Write the code to a JSON file, which `load_code` reads.

        Parameters
        ----------
        path
            The file.

        Raises
        ------
        InputError
            For bins of an attack's score, which nobody should release.
        """
        content = self._stored()
        if content is None:
            raise InputError(
                "code",
                self.in_words,
                requirement="must be by 'kmeans' or 'tree' to be stored",
                remedy="release another code: an attack's score is what tells most about the secret",
            )
        form: dict[str, Any] = {"format": _FORMAT}
        if self.terms is not None:
            texts = [None if one is None else one.tolist() for one in self.terms.buckets]
            form = {"format": _FORMAT_OF_TEXTS, "texts": texts}
        write_whole(Path(path), json.dumps({**form, **content}).encode())

    def _stored(self) -> dict[str, Any] | None:
        """What a file holds of the code; None for one that must not be released."""
        return None


@dataclass(frozen=True, kw_only=True)
class Means(Code):
    """The nearest of a few points, after every column was divided by its scale.

    Attributes
    ----------
    scales
        Of each column.
    centres
        The points, one in each row, divided by the scales.
    """

    scales: NDArray[np.float64] = field(compare=False)
    centres: NDArray[np.float64] = field(compare=False)

    def _cells(self, rows: _Matrix) -> _Whole:
        # Neither by a matrix product nor by columns, whose rounding may depend on the other rows: equal vectors have
        # equal cells.
        products = np.einsum("ij,kj->ik", np.ascontiguousarray(rows / self.scales), self.centres)
        cells: _Whole = np.argmax(products - (self.centres**2).sum(axis=1) / 2, axis=1)
        return cells

    @property
    def in_words(self) -> str:
        """How the cells were made."""
        return f"{self.cells} cells by k-means"

    def _stored(self) -> dict[str, Any]:
        return {"kind": "kmeans", "scales": self.scales.tolist(), "centres": self.centres.tolist()}


@dataclass(frozen=True, kw_only=True)
class Tree(Code):
    """The leaf of a decision tree: at each node, one column is compared with a threshold.

    Attributes
    ----------
    features
        The column of each node; −1 at a leaf.
    thresholds
        Of each node; rows that do not exceed it go left.
    left, right
        The nodes below each node. A leaf has its cell on the left.
    """

    features: _Whole = field(compare=False)
    thresholds: NDArray[np.float64] = field(compare=False)
    left: _Whole = field(compare=False)
    right: _Whole = field(compare=False)

    def _cells(self, rows: _Matrix) -> _Whole:
        nodes, every = np.zeros(len(rows), dtype=np.int64), np.arange(len(rows))
        for _ in range(len(self.features)):
            features = self.features[nodes]
            inner = features >= 0
            if not inner.any():
                break
            below = rows[every, np.maximum(features, 0)] <= self.thresholds[nodes]
            nodes = np.where(inner, np.where(below, self.left[nodes], self.right[nodes]), nodes)
        return self.left[nodes]

    @property
    def in_words(self) -> str:
        """How the cells were made."""
        return f"{self.cells} cells by a decision tree"

    def _stored(self) -> dict[str, Any]:
        nodes = {name: getattr(self, name).tolist() for name in ("features", "thresholds", "left", "right")}
        return {"kind": "tree", "columns": self.columns, **nodes}


@dataclass(frozen=True, kw_only=True)
class Scores(Code):
    """Bins of an attack's score.

    Attributes
    ----------
    learner
        The attack.
    score
        Its score of columns.
    cuts
        The ends of the bins.
    """

    learner: str
    score: Callable[[list[NDArray[Any]]], NDArray[np.float64]] = field(compare=False)
    cuts: NDArray[np.float64] = field(compare=False)

    def _cells(self, rows: _Matrix) -> _Whole:
        return np.searchsorted(self.cuts, self.score(list(rows.T)), side="right").astype(np.int64)

    @property
    def in_words(self) -> str:
        """How the cells were made."""
        return f"{self.cells} bins of the score of an attack, {LEARNER_NAMES[self.learner]}"


def matrix(name: str, value: object) -> _Matrix:
    """A matrix of finite numbers; float64, without a copy where it is that already."""
    requirement = "must be a matrix of finite numbers, with a row for each record"
    validate.unmasked(name, value)
    try:
        found = np.asarray(validate.detached(value))
    except Exception:  # ragged lists and foreign __array__ methods raise what they like
        found = np.zeros(0)
    if found.ndim != 2 or found.dtype.kind not in "fiub" or not found.shape[1]:
        what = f"{found.dtype} of shape {found.shape}"
        raise InputError(name, what, requirement=requirement, remedy="pass a two-dimensional array of numbers")
    rows = validate.floats(name, found)
    bad = len(rows) - int(np.isfinite(rows).all(axis=1).sum())
    if bad:
        remedy = "leave such rows out only if that is unrelated to the secret, else give them numbers of their own"
        raise InputError(name, f"{bad} rows with missing or infinite numbers", requirement=requirement, remedy=remedy)
    return rows


def vectors_of(name: str, value: object) -> _Matrix | list[NDArray[Any]]:
    """A matrix of finite numbers; where texts are among them, a list of columns, in which each text is an object."""
    columns = with_texts(name, value)
    return matrix(name, value) if columns is None else columns


def within(rows: _Matrix) -> _Matrix:
    """The same numbers, those beyond ±1e150 at that end: a code and attacks add squares of them."""
    return np.clip(rows, -_FARTHEST, _FARTHEST) if rows.size and np.abs(rows).max() > _FARTHEST else rows


def parsed(code: object) -> tuple[str, int | None]:
    """The kind of a code and its number of cells, from "auto", "kmeans", "tree" or "attack", and maybe ":64"."""
    kind, colon, cells = str(code).partition(":")
    whole = not colon or (cells.isascii() and cells.isdigit() and 2 <= int(cells) <= _MOST_CELLS)
    if not isinstance(code, str) or kind not in CODES or not whole or (kind == "auto" and colon):
        raise InputError(
            "code",
            code,
            requirement=f"must be one of {', '.join(CODES)}, and a number of cells from 2 to {_MOST_CELLS} may follow "
            "the last three, e.g. 'kmeans:64'",
            remedy="use 'auto'",
        )
    return kind, int(cells) if colon else None


def own_rows(rows: int, seed: int) -> _Whole:
    """Which rows of a table fix the code, ascending: a quarter, 50 000 at most, by the seed and their number alone."""
    count = min(rows // 4, 50_000)
    return np.sort(np.random.default_rng([seed, 0xC0DE]).choice(rows, count, replace=False))


def fixed(
    labels: NDArray[np.bool_], vectors: _Matrix | list[NDArray[Any]], *, code: str = "auto", seed: int = 0
) -> Code:
    """Fix a code on rows that will not be certified: of several, the one that shows the greatest advantage.

    Parameters
    ----------
    labels
        Whether the secret of each row is the positive one.
    vectors
        The outputs, one in each row; or columns, some of which hold texts.
    code
        As `audit_vectors` takes it.
    seed
        Of the parts of the rows and of what is fitted to them.
    """
    kind, cells = parsed(code)
    fewest = int(min(labels.sum(), (~labels).sum()))
    if fewest < LEAST_ROWS:
        raise InputError(
            "the table",
            f"{fewest} rows of a class among the {len(labels)} that fix the code",
            requirement=f"must have {LEAST_ROWS} rows of each class there, a quarter of all rows",
            remedy="add rows, or certify the columns without a code",
        )
    order = np.random.default_rng([seed, 0xF17]).permutation(len(labels))
    fit, rest = np.split(order, [int(_FIT * len(order))])
    terms = None
    if isinstance(vectors, list):
        terms = chosen(labels[fit], [one[fit] for one in vectors])
        vectors = matrix("output", terms(vectors))
    vectors = within(vectors)
    found: list[Code] = []
    wanted = [kind] if kind != "auto" else ["kmeans", "tree", "attack"]
    for one in wanted:
        most = min(cells or CELLS[one], max(2, len(fit) // _ROWS_OF_A_CELL))
        if one == "kmeans":
            found.append(_means(vectors[fit], most, seed))
        elif one == "tree":
            found.append(_tree(vectors[fit], labels[fit], most, seed))
        else:
            found += _scores(vectors, labels, fit, rest, most, seed)
    shown = [_shown(one, vectors, labels, fit, rest) for one in found]
    best = int(np.argmax(shown))
    return replace(found[best], shown=shown[best], terms=terms)


def _shown(code: Code, vectors: _Matrix, labels: NDArray[np.bool_], fit: _Whole, rest: _Whole) -> float:
    """The advantage, on rows of `rest`, of the best rule by cell on those of `fit`."""

    def shares(rows: _Whole, truth: bool) -> NDArray[np.float64]:
        here = rows[labels[rows] == truth]
        return np.bincount(code.cells_of(vectors[here]), minlength=code.cells) / max(1, len(here))

    positive = shares(fit, True) > shares(fit, False)
    return float((shares(rest, True) - shares(rest, False))[positive].sum())


def _means(vectors: _Matrix, cells: int, seed: int) -> Means:
    from sklearn.cluster import MiniBatchKMeans

    spread = vectors.std(axis=0)
    scales = np.where((spread > 0) & np.isfinite(spread), spread, 1.0)
    different = min(cells, len(np.unique(vectors, axis=0)))
    model = MiniBatchKMeans(n_clusters=different, n_init=1, batch_size=4096, random_state=seed).fit(vectors / scales)
    centres = np.asarray(model.cluster_centers_, dtype=np.float64)
    return Means(columns=vectors.shape[1], cells=different, scales=scales, centres=centres)


def _tree(vectors: _Matrix, labels: NDArray[np.bool_], cells: int, seed: int) -> Tree:
    from sklearn.tree import DecisionTreeClassifier

    model = DecisionTreeClassifier(
        max_leaf_nodes=cells, min_samples_leaf=_ROWS_OF_A_CELL, class_weight="balanced", random_state=seed
    ).fit(np.clip(vectors, -1e38, 1e38), labels)
    tree = model.tree_
    leaf = tree.children_left < 0
    left = np.where(leaf, np.cumsum(leaf) - 1, tree.children_left).astype(np.int64)
    return Tree(
        columns=vectors.shape[1],
        cells=int(leaf.sum()),
        features=np.where(leaf, -1, tree.feature).astype(np.int64),
        thresholds=tree.threshold.astype(np.float64),
        left=left,
        right=tree.children_right.astype(np.int64),
    )


def _scores(
    vectors: _Matrix, labels: NDArray[np.bool_], fit: _Whole, rest: _Whole, cells: int, seed: int
) -> list[Code]:
    """Bins of the score of each attack that learns from many columns, each with as many rows."""
    found: list[Code] = []
    columns = list(vectors[fit].T)
    for learner in fitting(columns):
        if learner == "histogram" and len(columns) > 2:  # its own cells would have one row each
            continue
        score = LEARNERS[learner](columns, labels[fit], seed)
        cuts = np.unique(np.quantile(score(list(vectors[rest].T)), np.linspace(0, 1, cells + 1)[1:-1]))
        found.append(Scores(columns=len(columns), cells=len(cuts) + 1, learner=learner, score=score, cuts=cuts))
    return found


def load_code(path: Path | str) -> Code:
    """Read a code that `Code.save` or `tacit audit --release-code` wrote.

    Parameters
    ----------
    path
        The JSON file.

    Raises
    ------
    InputError
        Where the file holds no code.
    """
    place = Path(path)
    try:
        held = json.loads(plain(place, "path").read_bytes())
        known = held["format"] in (_FORMAT, _FORMAT_OF_TEXTS)
        terms = None if held["format"] != _FORMAT_OF_TEXTS else _stored_terms(held["texts"])
        if known and held["kind"] == "kmeans":
            scales, centres = (np.array(held[name], dtype=np.float64) for name in ("scales", "centres"))
            fits = terms is None or terms.width == len(scales)
            fits = fits and scales.shape == centres.shape[1:] and centres.ndim == 2
            if fits and (scales > 0).all() and np.isfinite(scales).all() and np.isfinite(centres).all():
                return Means(columns=len(scales), cells=len(centres), scales=scales, centres=centres, terms=terms)
        elif known and held["kind"] == "tree":
            features, left, right = (_stored_whole(held[name]) for name in ("features", "left", "right"))
            thresholds, columns = np.array(held["thresholds"], dtype=np.float64), int(held["columns"])
            fits = features.shape == left.shape == right.shape == thresholds.shape == (len(thresholds),)
            fits = fits and (terms is None or terms.width == columns)
            if fits and _is_tree(features, left, right, columns=columns) and np.isfinite(thresholds).all():
                return Tree(
                    columns=columns,
                    cells=int((features < 0).sum()),
                    features=features,
                    thresholds=thresholds,
                    left=left,
                    right=right,
                    terms=terms,
                )
    except (OSError, ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError):
        pass
    raise InputError(
        "path", str(path), requirement="must be a codebook that an audit wrote", remedy="write it again with save"
    )


def _is_tree(features: _Whole, left: _Whole, right: _Whole, *, columns: int) -> bool:
    """Whether every node leads to later ones, and leaves have the cells in their order."""
    leaf, nodes = features == -1, np.arange(len(features))
    inner = ~leaf
    leads = all(((side > nodes) & (side < len(nodes)))[inner].all() for side in (left, right))
    cells = np.array_equal(left[leaf], np.arange(int(leaf.sum())))
    return bool(leads and cells and (features >= -1).all() and features.max() < columns)


def _stored_whole(held: list[int]) -> _Whole:
    found = np.array(held)
    if found.ndim != 1 or (found.size and found.dtype.kind != "i"):
        raise ValueError
    return found.astype(np.int64)


def _stored_terms(held: list[list[int] | None]) -> Terms:
    buckets = [None if one is None else _stored_whole(one) for one in held]
    texts = [one for one in buckets if one is not None]
    if not texts or any((np.diff(one, prepend=-1, append=BUCKETS) <= 0).any() for one in texts):
        raise ValueError
    return Terms(tuple(buckets))
