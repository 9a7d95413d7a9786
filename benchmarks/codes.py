"""How often certificates of codes of vectors and of texts, of menus of releases, and limits by a kernel, are wrong.

python benchmarks/codes.py [codes] [texts] [menus] [kernels]

Every law is one of 1500 points or texts or fewer, drawn once, with a chance for either secret, so that the truth about
a code, a rounding or a label is a sum over the points, exact but for rounding. Of noise it is a sum over the cells of a
grid in one and two columns, at most 0.001 and 0.003 too small, and in more a mean over 20 000 draws, less three
standard errors (of about 0.002 each).
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np
from audit import LOSSES, RATES, truths
from numpy.typing import NDArray
from scipy import stats

from tacit.audit import Certificate, audit_vectors, release_menu
from tacit.theory.kernels import variation_kernel

TABLES, FAILURE = 400, 0.1
POINTS, DRAWS = 1500, 20_000
CODES = {"kmeans:9": TABLES, "tree:9": TABLES, "attack:4": 10}
"""How many tables of each law are tried with each code; the last one fits models, and is slow."""
TEXT_CODES = ("kmeans:5", "tree:5")
TEXT_ROWS = (240, 240)
NOISES = (2.0, 4.0)
"""The noise of vectors, in units of their spread, for limits by a kernel."""

_Floats = NDArray[np.floating]
_Cells = NDArray[np.int64]


class Law:
    """Points, at which the secret has a mean (coded ±1, with both values equally likely), and rows by secret."""

    def __init__(
        self, points: _Floats, bias: _Floats, *, rows: tuple[int, int] = (400, 400), weights: _Floats | None = None
    ) -> None:
        self.points = points if points.dtype == object else points.reshape(len(points), -1)  # or texts
        self.rows = rows
        base = np.ones(len(points)) if weights is None else weights
        one, zero = base * (1 + bias), base * (1 - bias)
        self.one, self.zero = one / one.sum(), zero / zero.sum()
        self._known: dict[str, _Floats] = {}

    def table(self, source: np.random.Generator) -> tuple[_Cells, _Floats]:
        """Secrets and vectors, in any order."""
        laws = zip(self.rows, (self.one, self.zero), strict=True)
        drawn = np.concatenate([source.choice(len(self.points), size, p=law) for size, law in laws])
        order = source.permutation(len(drawn))
        return np.repeat([1, 0], self.rows)[order], self.points[drawn][order]

    @property
    def spread(self) -> float:
        """A deviation that most points do not exceed, however heavy their tails."""
        away = np.linalg.norm(self.points - np.median(self.points, axis=0), axis=1)
        return float(np.quantile(away, 0.9) / math.sqrt(self.points.shape[1]))

    def of_cells(self, cells: _Cells) -> _Floats:
        """The truth about whoever sees the cell of a point."""
        one, zero = (np.bincount(cells, weights=law).astype(np.float64) for law in (self.one, self.zero))
        return truths(one, zero)

    def of_release(self, what: str) -> _Floats:
        """The truth about whoever sees a release of a menu, which is in words."""
        if what not in self._known:
            size = float(what.split()[-1]) if what[-1].isdigit() else 0.0
            self._known[what] = self._noisy(size) if "noise" in what else self._changed(what, size)
        return self._known[what]

    def _changed(self, what: str, step: float) -> _Floats:
        """The largest by two ways of rounding what is half-way; zeros keep their sign, as in what is released."""
        largest, most = self.points.argmax(axis=1), self.points.max(axis=1)
        columns = {"rounded to multiples": self.points, "as the largest, rounded": most[:, None]}
        found = []
        for rounded in (_half_to_even, _half_away):
            if step and "at least" not in what:
                start = next(words for words in columns if what.startswith(words))
                seen = [one.view(np.int64) for one in np.ascontiguousarray(rounded(columns[start] / step).T)]
                seen += [largest] * ("largest" in what)
            else:
                seen = [largest if "largest" in what else (self.points[:, 0] >= step).astype(np.int64)]
            found.append(self.of_cells(np.unique(np.stack(seen, axis=1), axis=0, return_inverse=True)[1].ravel()))
        return np.maximum(*found)

    def _noisy(self, noise: float) -> _Floats:
        """v and total variation alone."""
        gap, columns = self.one - self.zero, self.points.T
        if len(columns) <= 2:
            grids = [np.arange(one.min() - 8 * noise, one.max() + 8 * noise, noise / 16) for one in columns]
            if len(grids) == 2:
                grids = [grid[::4] for grid in grids]
            first, *second = (
                stats.norm.cdf((grid[:, None] + np.diff(grid)[0] / 2 - one) / noise)
                - stats.norm.cdf((grid[:, None] - np.diff(grid)[0] / 2 - one) / noise)
                for grid, one in zip(grids, columns, strict=True)
            )
            masses = [(first * law) @ second[0].T if second else first @ law for law in (self.one, self.zero)]
            return truths(*(mass.ravel() for mass in masses))[:2]
        source = np.random.default_rng(0)
        drawn = source.choice(len(self.points), DRAWS, p=(self.one + self.zero) / 2)
        seen = self.points[drawn] + noise * source.normal(size=(DRAWS, len(columns)))
        far = ((seen**2).sum(axis=1)[:, None] + (self.points**2).sum(axis=1) - 2 * seen @ self.points.T) / noise**2
        near = np.exp((far.min(axis=1, keepdims=True) - far) / 2)
        mean = near @ gap / (near @ (self.one + self.zero))
        return np.array([values.mean() - 3 * values.std() / DRAWS**0.5 for values in (mean**2, np.abs(mean))])


def _half_to_even(numbers: _Floats) -> _Floats:
    return np.rint(numbers)


def _half_away(numbers: _Floats) -> _Floats:
    return np.copysign(np.floor(np.abs(numbers) + 0.5), numbers)


def vector_laws() -> dict[str, Law]:
    """Twenty laws of vectors."""
    source, nothing = np.random.default_rng(7), np.zeros(POINTS)
    one, two, three, four, eight, ten, thirty = (
        source.normal(size=(POINTS, columns)) for columns in (1, 2, 3, 4, 8, 10, 30)
    )
    wild, size = source.standard_cauchy((POINTS, 4)), source.standard_t(1.5, (POINTS, 3))
    bits, ties = source.integers(0, 2, (POINTS, 6)).astype(float), source.integers(0, 3, (POINTS, 3)).astype(float)
    of_eight, of_fifty = (source.integers(0, count, POINTS) for count in (8, 50))
    clusters = source.normal(size=(50, 5))
    odds = np.exp(source.normal(size=(POINTS, 10)) * source.gamma(2, 1, (POINTS, 1)))
    softmax = odds / odds.sum(axis=1, keepdims=True)
    sure, kinds = softmax.max(axis=1), source.random((40, 2))
    return {
        "nothing leaks, 1 column": Law(one, nothing),
        "nothing leaks, 30 columns": Law(thirty, nothing),
        "nothing leaks, ties": Law(ties, nothing),
        "nothing leaks, rare secret": Law(three, nothing, rows=(300, 1500)),
        "a bias by the sign of one of 2 columns": Law(two, 0.3 * np.sign(two[:, 0])),
        "a slope in one of 30 columns": Law(thirty, np.tanh(thirty[:, 4])),
        "two columns together": Law(two, 0.5 * np.sign(two[:, 0] * two[:, 1])),
        "two of 10 columns together": Law(ten, 0.8 * np.sign(ten[:, 0] * ten[:, 7])),
        "parity of three bits of 6": Law(bits, 0.8 * (-1) ** bits[:, :3].sum(axis=1)),
        "tails alone": Law(three, 0.9 * (np.abs(three[:, 0]) > 2)),
        "heavy tails, a sign": Law(wild, 0.4 * np.sign(wild[:, 0])),
        "heavy tails, their size": Law(size, np.tanh(np.log(np.abs(size).max(axis=1)))),
        "8 clusters": Law(clusters[of_eight] + 0.1 * four[:, :1], 0.6 * (-1.0) ** of_eight),
        "one cluster of 50 exposed": Law(clusters[of_fifty] + 0.02 * four[:, :1], 1.0 * (of_fifty == 0)),
        "rare secret, a slope": Law(four, np.tanh(four[:, 1]), rows=(300, 1500)),
        "5 % exposed, each by a vector of its own": Law(eight, np.sign(eight[:, 0]) * (np.abs(eight[:, 1]) > 1.96)),
        "40 vectors": Law(kinds, 0.4 * np.sign(kinds[:, 0] - 0.5)),
        "softmax, leak by confidence": Law(softmax, 0.5 * np.sign(sure - np.median(sure))),
        "scales of 1e-9 and 1e9": Law(two * [1e-9, 1e9], 0.5 * np.sign(two[:, 0])),
        "everything leaks, frequent and rare vectors": Law(one, np.sign(one[:, 0]), weights=source.pareto(1.2, POINTS)),
    }


def text_laws() -> dict[str, Law]:
    """Twenty laws of texts."""
    source = np.random.default_rng(9)
    words = np.array(["".join(source.choice(list("aeioulmnrst"), source.integers(2, 7))) for _ in range(80)])
    calm = [" ".join(words[source.integers(0, 80, source.integers(1, 9))]) for _ in range(400)]
    some, few = source.random(400) < 0.3, source.random(400) < 0.03
    side, letters = (-1.0) ** np.arange(400), [chr(ord("a") + place) for place in range(26)]
    base = [" ".join(words[source.integers(0, 80, 6)]) for _ in range(20)]
    near = [f"{text[:place]}{'#'}{text[place:]}" for text in base for place in range(20)]
    unique = [f"{place * 7919:09d}-{source.integers(10**9):x}" for place in range(1500)]
    lengths = ["ab" * int(size) for size in source.integers(0, 40, 400)]
    strange = [
        "\0",
        "\0\0",
        "\ud800",
        "\U0001f600",
        "e\u0301",
        "\u00e9",
        "\u202e",
        " ",
        "  ",
        "\n",
        "nan",
        "1e5",
        "1.0",
        "1",
    ]

    def law(texts: list[str], bias: list[float] | _Floats, **options: object) -> Law:
        held = np.empty(len(texts), dtype=object)
        held[:] = texts
        return Law(held, np.asarray(bias, dtype=float), **{"rows": TEXT_ROWS, **options})  # type: ignore[arg-type]

    vowels = [0.6 if one in "aeiou" else -0.2 for one in letters]
    return {
        "nothing leaks": law(calm, np.zeros(400)),
        "nothing leaks, rare secret": law(calm, np.zeros(400), rows=(240, 800)),
        "nothing leaks, near-duplicates": law(near, np.zeros(400)),
        "nothing leaks, unique texts": law(unique, np.zeros(1500)),
        "nothing leaks, one letter": law(letters, np.zeros(26)),
        "nothing leaks, empty but for a few": law(
            ["", *calm[:20]], np.zeros(21), weights=np.append(20, np.full(20, 0.1))
        ),
        "a word that leaks": law(
            [f"{text} indeed" if one else text for text, one in zip(calm, some, strict=True)], 0.6 * some
        ),
        "a rare word tells all": law(
            [f"indeed {text}" if one else text for text, one in zip(calm, few, strict=True)], 1.0 * few
        ),
        "near-duplicates, by where a letter is": law(near, 0.5 * np.sign(np.arange(400) % 20 - 9.5)),
        "near-duplicates, by text": law(near, 0.7 * (-1.0) ** (np.arange(400) // 20)),
        "unique texts, each tells": law(unique, (-1.0) ** np.arange(1500)),
        "unique texts, by first digit": law(unique, [0.6 if int(text[1]) < 5 else -0.6 for text in unique]),
        "empty or not": law([text if one else "" for text, one in zip(calm, side > 0, strict=True)], 0.4 * side),
        "empty: a few exposed": law(
            ["", *calm[:200]], np.append(1.0, np.zeros(200)), weights=np.append(6, np.ones(200))
        ),
        "one letter, vowels": law(letters, vowels),
        "two words in a row": law(
            [f"{a} {b}" for a in words[:20] for b in words[:20]],
            [0.8 if a < b else -0.8 for a in words[:20] for b in words[:20]],
        ),
        "length alone": law(lengths, np.tanh([(len(text) - 40) / 20 for text in lengths])),
        "strange letters": law(strange, 0.7 * (-1.0) ** np.arange(len(strange))),
        "capitals": law([text.title() if one > 0 else text for text, one in zip(calm, side, strict=True)], 0.5 * side),
        "everything leaks, frequent and rare texts": law(calm, side, weights=source.pareto(1.2, 400)),
    }


def release_laws() -> dict[str, Law]:
    """Twenty laws of numbers to release: seventeen of one column, two of two, and one of six."""
    source, nothing = np.random.default_rng(8), np.zeros(POINTS)
    even, normal, sizes = source.random(POINTS), source.normal(size=POINTS), source.lognormal(0, 2, POINTS)
    late, wild = source.exponential(1.0, POINTS), source.standard_cauchy(POINTS)
    tenths, twentieths = source.integers(0, 11, POINTS) / 10, source.integers(0, 21, POINTS) / 20
    beta, near = source.beta(0.5, 0.5, POINTS), source.normal(size=POINTS) * 1e-3
    pairs = source.random((POINTS, 2))
    odds = np.exp(2 * source.normal(size=(POINTS, 6)))
    softmax = odds / odds.sum(axis=1, keepdims=True)
    sure = softmax.max(axis=1)
    near[::3] = even[::3]
    special = np.where(even < 0.03, 0.7777, even)
    return {
        "nothing leaks, even": Law(even, nothing),
        "nothing leaks, normal": Law(normal, nothing),
        "nothing leaks, ties half-way": Law(twentieths, nothing),
        "nothing leaks, rare secret": Law(beta, nothing, rows=(100, 1500)),
        "a bias above one half": Law(beta, 0.3 * np.sign(beta - 0.5)),
        "second digit": Law(even, 0.5 * (-1) ** np.floor(100 * even)),
        "third digit": Law(even, 0.9 * (-1) ** np.floor(1000 * even)),
        "tail alone": Law(late, 0.9 * (late > 3)),
        "heavy tails, a sign": Law(wild, 0.4 * np.sign(wild)),
        "heavy tails, their size": Law(sizes, np.tanh(np.log(sizes))),
        "tenths": Law(tenths, 0.6 * (-1) ** np.rint(10 * tenths)),
        "half-way or not": Law(twentieths, 0.6 * (-1) ** np.rint(20 * twentieths)),
        "rare secret, a slope": Law(normal, np.tanh(normal), rows=(100, 1500)),
        "3 % at a number of their own": Law(special, 1.0 * (special == 0.7777)),
        "the sign of what rounds to 0": Law(near, 0.7 * np.sign(near)),
        "everything leaks, millions": Law(1e6 * normal, np.sign(normal)),
        "1e-7 and less": Law(1e-7 * even, 0.5 * np.sign(even - 0.3)),
        "one of two columns": Law(pairs, 0.3 * np.sign(pairs[:, 0] - 0.5)),
        "two columns together": Law(pairs, 0.5 * np.sign((pairs[:, 0] - 0.5) * (pairs[:, 1] - 0.5))),
        "softmax of 6, leak by confidence": Law(softmax, 0.5 * np.sign(sure - np.median(sure))),
    }


def wrong(found: Certificate, truth: _Floats) -> bool:
    """Whether any bound of a certificate is below the truth."""
    bounds = np.array([found.squared, found.variation, *found.tpr_at(RATES), *found.hockey_stick(LOSSES)])
    return bool((bounds[: len(truth)] < truth * (1 - 1e-12) - 1e-12).any())


def missed_codes(law: Law, code: str, *, tables: int, failure: float = FAILURE) -> float:
    """The share of tables whose certificate of a code is wrong about that code."""
    source, misses = np.random.default_rng(1), 0
    for seed in range(tables):
        found = audit_vectors(*law.table(source), code=code, failure_probability=failure, attack_rows=0, seed=seed)
        misses += wrong(found.certificate, law.of_cells(found.code(law.points)))
    return misses / tables


def missed_menus(law: Law, *, tables: int, failure: float = FAILURE) -> float:
    """The share of tables for which the certificate of any option of the menu is wrong."""
    source, misses = np.random.default_rng(1), 0
    for seed in range(tables):
        secrets, vectors = law.table(source)
        menu = release_menu(secrets, vectors, failure_probability=failure, seed=seed)
        misses += any(wrong(option.certificate, law.of_release(option.what)) for option in menu.options)
    return misses / tables


def missed_kernels(law: Law, noise: float, *, tables: int, failure: float = FAILURE) -> tuple[float, float]:
    """The share of tables whose limit by a kernel on total variation is wrong, and the mean of these limits."""
    source, pairs = np.random.default_rng(1), min(law.rows)
    truth, found = law.of_release(f"noise {noise}")[1], []
    for _ in range(tables):
        secrets, vectors = law.table(source)
        ones, zeros = (vectors[secrets == secret][:pairs] for secret in (1, 0))
        found.append(variation_kernel(ones, zeros, noise=noise, failure_probability=failure))
    return float(np.mean(np.array(found) < truth)), float(np.mean(found))


def main() -> None:
    wanted = sys.argv[1:] or ["codes", "texts", "menus", "kernels"]
    print(f"certificates that are wrong in any bound, at a failure probability of {FAILURE}", flush=True)
    start = time.process_time()
    for code, tables in CODES.items() if "codes" in wanted else ():
        found = {name: missed_codes(law, code, tables=tables) for name, law in vector_laws().items()}
        _tell(f"code {code}", found, tables, start)
    for code in TEXT_CODES if "texts" in wanted else ():
        found = {name: missed_codes(law, code, tables=TABLES) for name, law in text_laws().items()}
        _tell(f"texts, code {code}", found, TABLES, start)
    if "menus" in wanted:
        found = {name: missed_menus(law, tables=TABLES) for name, law in release_laws().items()}
        _tell("menus", found, TABLES, start)
    for times in NOISES if "kernels" in wanted else ():
        limits = {name: missed_kernels(law, times * law.spread, tables=TABLES) for name, law in vector_laws().items()}
        found = {name: share for name, (share, _) in limits.items()}
        _tell(f"limits by a kernel, noise of {times:g} deviations", found, TABLES, start)
        print(f"    which are always 1 on {sum(mean == 1 for _, mean in limits.values())} of the laws", flush=True)


def _tell(what: str, found: dict[str, float], tables: int, start: float) -> None:
    worst, mean = max(found, key=lambda name: found[name]), float(np.mean(list(found.values())))
    chance = stats.binom.isf(1e-4, tables, FAILURE) / tables
    print(
        f"  {what}, {len(found)} laws, {tables} tables each: at most {found[worst]:.3f} ({worst}; by chance up to "
        f"{chance:.2f}), on average {mean:.4f}; {time.process_time() - start:.0f} s of the processor so far",
        flush=True,
    )


if __name__ == "__main__":
    main()
