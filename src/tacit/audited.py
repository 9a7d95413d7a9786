"""`tacit audit`: a table of secrets and outputs in, a report out: what nobody can learn, and what attacks did learn.

The file is read once (a CSV file twice, to be sure of its types; before that its rows are counted where bins depend on
their number), part by part. Certificates count all rows; attacks
and pictures use a random part of them that fits into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import checked, tables
from .audit import (
    SCOPE,
    Attempt,
    Audit,
    Certificate,
    ImpliedByDP,
    Tally,
    attempts,
    certify_tallies,
    certify_tally,
    rows_needed,
)
from .audit.attacks import FALSE_POSITIVE_RATES, LEAST_ROWS, METHODS
from .audit.certifying import bin_width
from .errors import InputError, NoTheoremError
from .guarantee import safe_text
from .report import Figure, Report, Table, figures

_MOST_VALUES = 5_000_000
_MOST_SLICES = 1_000
_MOST_SHOWN = 40  # slices in the table; the JSON has all
_ATTACKS_SHARE = 0.1  # of delta, and on top of it, for the attacks' intervals
_KINDS = {"b": "booleans", "i": "whole numbers", "u": "whole numbers", "f": "numbers", "U": "text"}


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to audit; the fields are the options of the command line. Pictures are for a page, and take a second."""

    table: Path
    secret: str
    outputs: tuple[str, ...]
    noise: float | None = None
    monotone: bool = False
    lipschitz: float | None = None
    positive: str | None = None
    slices: str | None = None
    delta: float = 0.05
    require_advantage: float | None = None
    attack_rows: int = 100_000
    seed: int = 0
    pictures: bool = True

    @property
    def method(self) -> str:
        """Of the certificate; "auto" where nothing is assumed."""
        return "monotone" if self.monotone else "auto" if self.lipschitz is None else "lipschitz"

    @property
    def loss(self) -> str:
        """What is certified: v and total variation; of a Lipschitz posterior v alone, and the rest follows."""
        return "joint" if self.lipschitz is None else "squared"

    def tally(self, rows: int) -> Tally:
        """An empty one, for a table of so many rows."""
        return Tally(noise=self.noise, width=self.width(rows))

    def width(self, rows: int) -> float | None:
        """Of the bins for a Lipschitz posterior, by the number of rows alone."""
        return None if self.lipschitz is None else bin_width(self.lipschitz, rows=rows)


@dataclass(kw_only=True)
class _Read:
    """What was kept of the table: counts of all rows by slice, and a random part of the rows."""

    tallies: dict[Any, Tally]
    sample: _Sample
    kinds: tuple[str, ...]

    @property
    def rows(self) -> int:
        return sum(sum(tally.rows) for tally in self.tallies.values())

    @property
    def whole(self) -> Tally:
        """The counts of all slices together."""
        first, *others = self.tallies.values()
        if not others:
            return first
        both = Tally(noise=first.noise, width=first.width)
        for tally in self.tallies.values():
            both.merge(tally)
        return both


class _Sample:
    """So many rows of each class, every row with the same chance: those whose random numbers are smallest."""

    def __init__(self, rows: int, seed: int) -> None:
        self._most, self._rng = rows // 2, np.random.default_rng([seed, rows])
        self._kept: dict[Any, tuple[NDArray[np.float64], list[NDArray[Any]]]] = {}

    def add(self, secrets: NDArray[Any], columns: list[NDArray[Any]], counts: NDArray[np.int64] | None) -> None:
        if not self._most:
            return
        places = np.arange(len(secrets)) if counts is None else np.repeat(np.arange(len(secrets)), counts)
        chances, labels = self._rng.random(len(places)), secrets[places]
        while len(labels):
            label = labels[0].item()
            here = labels == label
            before, kept = self._kept.get(label, (np.zeros(0), [one[:0] for one in columns]))
            ceiling = before.max() if len(before) == self._most else 1.0
            better = here & (chances < ceiling)
            keys = np.concatenate([before, chances[better]])
            rows = [np.concatenate([old, new[places[better]]]) for old, new in zip(kept, columns, strict=True)]
            if len(keys) > self._most:
                best = np.argpartition(keys, self._most)[: self._most]
                keys, rows = keys[best], [one[best] for one in rows]
            self._kept[label] = keys, rows
            places, chances, labels = places[~here], chances[~here], labels[~here]

    def table(self, share: float = 1.0) -> tuple[NDArray[Any], dict[int, NDArray[Any]]]:
        """Secrets and columns of the sample, or of a random share of it."""
        secrets, columns = [], []
        for label, (keys, rows) in self._kept.items():
            best = np.argsort(keys)[: max(1, round(share * len(keys)))]
            secrets.append(np.full(len(best), label))
            columns.append([one[best] for one in rows])
        joined = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
        return np.concatenate(secrets), dict(enumerate(joined))

    @property
    def fewest(self) -> int:
        """Rows of the smaller class."""
        return min((len(keys) for keys, _ in self._kept.values()), default=0)

    @property
    def rows(self) -> int:
        return sum(len(keys) for keys, _ in self._kept.values())


def audit(task: Task, *, advance: Callable[[str], None] = lambda _: None) -> Report:
    """Read the table, certify it, attack it, and report both."""
    _check(task)
    read = _read(task, advance)
    advance("certifying")
    name, whole = _name(task), read.whole
    options: dict[str, Any] = {
        "delta": task.delta if task.slices is None else task.delta / 2,
        "loss": task.loss,
        "lipschitz": task.lipschitz,
        "positive": _positive(task, whole),
        "name": name,
        "seed": task.seed,
    }
    certificate = certify_tally(whole, method=task.method, **options)
    slices = {}
    if task.slices is not None:
        slices = certify_tallies(read.tallies, method=certificate.method, **options)
    tried: tuple[Attempt, ...] = ()
    if read.sample.fewest >= LEAST_ROWS:
        advance("attacking")
        secrets, columns = read.sample.table()
        tried = attempts(
            secrets,
            columns,
            certificate=certificate,
            noise=task.noise,
            failure_probability=_ATTACKS_SHARE * task.delta,
            seed=task.seed,
        )
    found = Audit(
        certificate=certificate,
        attacks=tuple(attempt.attack for attempt in tried),
        require_advantage=task.require_advantage,
    )
    failing = [
        value
        for value, one in slices.items()
        if task.require_advantage is not None and not one.meets(advantage=task.require_advantage)
    ]
    if task.pictures:
        advance("drawing")
    return Report(
        command="audit",
        title=f"What {name} of {task.table.name} tells about {task.secret}",
        summary=_summary(task, read, found, slices, failing, whole.symbols),
        comparisons=found.comparisons,
        figures=_figures(task, read, found, tried) if task.pictures else (),
        tables=_tables(task, found, tried, slices),
        met=found.met and not failing,
        detail=_detail(task, read, found, tried, slices, failing),
    )


def _check(task: Task) -> None:
    checked.probability("--delta", task.delta, remedy="use a small probability such as 0.05")
    if task.noise is not None:
        checked.number("--noise", task.noise, above=0, remedy="leave it out where no noise is added")
    if task.require_advantage is not None:
        checked.number("--require-advantage", task.require_advantage, above=0, at_most=1, remedy="use 0.1, say")
    checked.whole("--attack-rows", task.attack_rows, at_least=0, remedy="use 0 for no attacks")
    checked.whole("--seed", task.seed, at_least=0, remedy="use 0")
    if not task.outputs:
        raise InputError("--output", task.outputs, requirement="must be given", remedy="name what the adversary sees")
    named = [task.secret, *task.outputs, *([task.slices] if task.slices is not None else [])]
    if len(set(named)) < len(named):
        raise InputError(
            "--secret, --output and --slice",
            ", ".join(named),
            requirement="must name different columns",
            remedy="an output that is the secret tells everything; put what else is seen into --output",
        )
    if task.monotone and (task.noise is not None or len(task.outputs) > 1):
        raise InputError(
            "--monotone",
            ", ".join(task.outputs),
            requirement="must come with one output, and without --noise",
            remedy="leave it out",
        )
    if task.lipschitz is not None:
        checked.number("--lipschitz", task.lipschitz, above=0, remedy="leave it out where nothing is known")
        if task.noise is not None or task.monotone:
            raise InputError(
                "--lipschitz",
                task.lipschitz,
                requirement="must come without --noise and --monotone",
                remedy="state one of them; noise needs no assumption",
            )


def _positive(task: Task, tally: Tally) -> Any:
    """The secret that the command line calls positive, as the table has it."""
    if task.positive is None:
        return None
    for label in tally.labels:
        if isinstance(label, str):
            same = label == task.positive
        elif isinstance(label, bool):
            same = str(label).lower() == task.positive.lower()
        else:
            same = _number(task.positive) == label
        if same:
            return label
    raise InputError(
        "--positive",
        task.positive,
        requirement=f"must be a value of column {task.secret!r}",
        remedy=f"use {' or '.join(str(label) for label in sorted(tally.labels))}",
    )


def _number(text: str) -> float | None:
    """Whole numbers stay whole: beyond 2**53 floats would merge them."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _read(task: Task, advance: Callable[[str], None]) -> _Read:
    read = _Read(tallies={}, sample=_Sample(task.attack_rows, task.seed), kinds=())
    rows_expected = 0
    if task.lipschitz is not None:
        advance("counting rows")
        rows_expected = _rows(task)
    named = [task.secret, *task.outputs, *([task.slices] if task.slices is not None else [])]
    advance("reading the table")
    for columns, counts, share in tables.batches(task.table, named, name="TABLE"):
        secrets, outputs = columns[task.secret], [columns[output] for output in task.outputs]
        read.kinds = tuple(_KINDS[one.dtype.kind] for one in outputs)
        _check_numbers(task, outputs)
        for value, rows in _sliced(columns, task.slices):
            tally = read.tallies.setdefault(value, task.tally(rows_expected))
            seen = {output: one[rows] for output, one in zip(task.outputs, outputs, strict=True)}
            tally.add(
                secrets[rows],
                seen if len(seen) > 1 else seen[task.outputs[0]],
                weights=None if counts is None else counts[rows],
            )
        _check_size(task, read)
        read.sample.add(secrets, outputs, counts)
        advance(f"{min(100, round(100 * share))} of 100 % read")
    labels = {label for tally in read.tallies.values() for label in tally.labels}
    if len(labels) > 2:  # in different slices
        raise InputError(
            f"column {task.secret!r}",
            sorted(labels)[:8],
            requirement="must take exactly two values",
            remedy="compare two of them, or one against the rest",
        )
    return read


def _rows(task: Task) -> int:
    parts = tables.batches(task.table, [task.secret], name="TABLE")
    return sum(len(columns[task.secret]) if counts is None else int(counts.sum()) for columns, counts, _ in parts)


def _check_numbers(task: Task, outputs: list[NDArray[Any]]) -> None:
    for output, one in zip(task.outputs, outputs, strict=True):
        if one.dtype.kind == "U" and (task.noise is not None or task.method != "auto"):
            raise InputError(
                f"column {output!r}",
                str(one[0]),
                requirement="must hold numbers where --noise, --monotone or --lipschitz is given",
                remedy="leave it out for categories",
            )


def _check_size(task: Task, read: _Read) -> None:
    if len(read.tallies) > _MOST_SLICES:
        raise InputError(
            f"column {task.slices!r}",
            f"{len(read.tallies)} values or more",
            requirement=f"must take {_MOST_SLICES} values or fewer",
            remedy="group them: each slice pays with δ",
        )
    if sum(tally.symbols for tally in read.tallies.values()) > _MOST_VALUES:
        raise NoTheoremError(
            f"{_name(task)} must take {_MOST_VALUES} different values or fewer, got more; release it with noise and "
            "say --noise, round it before release, or audit fewer rows"
        )


def _sliced(columns: tables.Table, name: str | None) -> list[tuple[Any, Any]]:
    """(value, rows) for each value of the slice column."""
    if name is None:
        return [(None, slice(None))]
    left = columns[name]
    if left.dtype.kind == "f":
        raise InputError(
            f"column {name!r}",
            float(left[0]),
            requirement="must hold text, whole numbers or booleans, to make slices of",
            remedy="cut it into ranges first",
        )
    values, places = np.unique(left, return_inverse=True)
    return [(value, places == place) for place, value in enumerate(values.tolist()[: _MOST_SLICES + 1])]


def _name(task: Task) -> str:
    return ("column " if len(task.outputs) == 1 else "columns ") + " and ".join(repr(one) for one in task.outputs)


def _summary(
    task: Task, read: _Read, found: Audit, slices: dict[Any, Certificate], failing: list[Any], values: int
) -> tuple[str, ...]:
    certificate = found.certificate
    sentences = [found.verdict]
    if slices:
        worst = max(slices, key=lambda value: slices[value].advantage)
        limit = safe_text(slices[worst].advantage, toward="up")
        reading = (
            f"in {task.slices} = {worst!r}, the worst of {len(slices)} slices, nobody's advantage exceeds {limit}, all "
            f"slices together except with probability {task.delta / 2:g}"
        )
        said = f"{reading[:1].upper()}{reading[1:]}."
        if failing:
            said = f"Not proven in {len(failing)} of {len(slices)} slices: {reading}; "
            said += f"{task.require_advantage:g} is allowed."
        if failing and found.met:  # what keeps the release back comes first
            sentences = [said, f"On the whole table: {found.verdict[:1].lower()}{found.verdict[1:]}"]
        else:
            sentences.append(said)
    sentences.append(
        f"The secret, column {task.secret!r}, is {certificate.positive!r} in {certificate.positives} rows (called "
        f"positive) and {certificate.negative!r} in {certificate.negatives}."
    )
    sentences.append(_recognised(task, read, certificate, values))
    if not task.attack_rows:
        sentences.append("No attacks were made, so nothing shows how tight the certificate is.")
    elif not found.attacks:
        sentences.append(f"No attacks were made: they need {LEAST_ROWS} rows of each class.")
    elif read.sample.rows < read.rows:
        sentences.append(
            f"The certificate counts all {read.rows} rows; attacks were made on {read.sample.rows} of them, drawn at "
            "random."
        )
    return (*sentences, *SCOPE)


def _recognised(task: Task, read: _Read, certificate: Certificate, values: int) -> str:
    """How the output was read."""
    columns = ", ".join(f"{name!r} ({kind})" for name, kind in zip(task.outputs, read.kinds, strict=True))
    how = {
        "noisy": f"taken as released with fresh Gaussian noise of standard deviation {task.noise or 0:g}",
        "monotone": "taken, as you state, as a score with which the secret's probability only grows or only falls",
        "lipschitz": "taken, as you state, as numbers with which the secret's mean, ±1 and with both values equally "
        f"likely, changes by at most {task.lipschitz or 0:g} per unit: {values} bins were seen",
        "discrete": f"taken as a category each: {values} different ones were seen",
    }[certificate.method]
    return f"The output, column{'s' * (len(task.outputs) > 1)} {columns}, is {how}."


def _tables(task: Task, found: Audit, tried: tuple[Attempt, ...], slices: dict[Any, Certificate]) -> tuple[Table, ...]:
    made = [_readings(found.certificate, tried)]
    if tried:
        made.append(_attacks(tried))
    if slices:
        made.append(_slices(task, slices))
    made.append(_sizes_needed(task, found))
    return tuple(made)


def _up(value: float) -> str:
    return safe_text(value, toward="up")


def _readings(certificate: Certificate, tried: tuple[Attempt, ...]) -> Table:
    private = ImpliedByDP(epsilon=1.0)
    rows = [
        ("advantage (TPR − FPR)", _up(certificate.advantage), _up(private.advantage)),
        ("balanced accuracy", _up(certificate.balanced_accuracy), _up(private.balanced_accuracy)),
        ("area under the ROC", _up(certificate.auc), _up(private.auc)),
        ("bits about the secret", _up(certificate.bits), _up(private.bits)),
    ]
    rows += [
        (f"TPR at {100 * rate:g} % FPR", _up(float(certificate.tpr_at(rate))), _up(float(private.tpr_at(rate))))
        for rate in FALSE_POSITIVE_RATES
    ]
    return Table(
        title="What nobody exceeds",
        columns=("reading", "nobody exceeds", "ε = 1 would imply"),
        rows=tuple(rows),
        note="Proven from this table, for the average record, all at once except with probability "
        f"{certificate.delta:g}; beside it what differential privacy with ε = 1 and δ = 0 would imply, which this is "
        "not." + (" How near attacks came, the next table says." if tried else ""),
    )


def _attacks(tried: tuple[Attempt, ...]) -> Table:
    rows = []
    for attempt in tried:
        value, low, _ = attempt.rates.advantage
        cells = [attempt.method, f"{value:.4f}", safe_text(max(0.0, low), toward="down")]
        for _, rates in attempt.at_rates[1:]:
            cells.append(f"{rates.true_positive_rate:.4f} at {100 * rates.false_positive_rate:.2f} %")
        rows.append((*cells, safe_text(attempt.epsilon, toward="down")))
    aims = [f"TPR, aim {100 * aim:g} % FPR" for aim in FALSE_POSITIVE_RATES[1:]]
    chance = sum(1 - attempt.attack.confidence for attempt in tried)
    return Table(
        title="What attacks reached",
        columns=("attack", "advantage", "at least", *aims, "ε at least"),
        rows=tuple(rows),
        note="On rows that the attack was neither fitted to nor chosen on. At least: a limit (Clopper–Pearson), all "
        f"attacks together except with probability {chance:.2g}. After the TPR stands the FPR that was realised: ties "
        "make it differ from the one aimed at. ε at least: no release with a smaller ε, at δ = 0, behaves like this.",
    )


def _slices(task: Task, slices: dict[Any, Certificate]) -> Table:
    ordered = sorted(slices.items(), key=lambda item: -item[1].advantage)
    rows = []
    for value, one in ordered[:_MOST_SHOWN]:
        cells = [str(value), str(one.positives), str(one.negatives), _up(one.advantage)]
        if task.require_advantage is not None:
            cells.append("met" if one.meets(advantage=task.require_advantage) else "not proven")
        rows.append(tuple(cells))
    columns = (str(task.slices), "positives", "negatives", "advantage, at most")
    left = len(ordered) - len(rows)
    return Table(
        title=f"By {task.slices}",
        columns=columns if task.require_advantage is None else (*columns, "verdict"),
        rows=tuple(rows),
        note=f"All slices together except with probability {task.delta / 2:g}; the other half of δ is the whole "
        f"table's. A slice with one class alone bounds nothing.{f' {left} more are in the JSON.' if left else ''}",
    )


def _ceilings(task: Task) -> tuple[float, ...]:
    return tuple(sorted({0.02, 0.05, 0.1, 0.2} | ({task.require_advantage} if task.require_advantage else set())))


def _needed(task: Task, certificate: Certificate) -> dict[float, int]:
    """Below so many rows no table certifies the ceiling, by either half of the joint certificate or by v alone."""
    losses = ("squared", "zero-one") if certificate.loss == "joint" else ("squared",)
    needed = {}
    for ceiling in _ceilings(task):
        either = []
        for loss in losses:
            try:
                either.append(rows_needed(ceiling, delta=certificate.delta / len(losses), loss=loss, values=1))
            except InputError:  # out of reach
                continue
        if either:
            needed[ceiling] = min(either)
    return needed


def _sizes_needed(task: Task, found: Audit) -> Table:
    rows = [(f"{ceiling:g}", str(needed)) for ceiling, needed in _needed(task, found.certificate).items()]
    return Table(
        title="How many rows a ceiling takes",
        columns=("advantage, at most", "rows, at least"),
        rows=tuple(rows),
        note="Half of each class, and nothing leaking: with fewer rows no output can be certified to stay below. What "
        "leaks, and outputs with many values, take more.",
    )


def _figures(task: Task, read: _Read, found: Audit, tried: tuple[Attempt, ...]) -> tuple[Figure, ...]:
    certificate = found.certificate
    rates = (np.linspace(0, 1, 201) ** 2).tolist()
    limit = np.asarray(certificate.tpr_at(rates)).tolist()
    made = [
        Figure(
            title="Where every attack's ROC curve has to stay",
            caption="Nobody who sees only this output leaves the shaded region, whatever the method. Lines: the "
            "attacks on rows of their own, which may stray by chance. The diagonal is guessing."
            if tried
            else "Nobody who sees only this output leaves the shaded region, whatever the method.",
            alternative=f"True against false positive rate: the region reaches {_up(certificate.advantage)} above the "
            f"diagonal; attacks reach {safe_text(found.low, toward='down')} or more.",
            svg=figures.roc(rates, limit, {METHODS[attempt.method]: attempt.roc for attempt in tried}),
        )
    ]
    guessing = [attempt for attempt in tried if attempt.calibration]
    if guessing:
        best = guessing[0]
        made.append(
            Figure(
                title="Calibration of the posterior",
                caption=f"The probability of {certificate.positive!r} that the {METHODS[best.method]} guesses, and how "
                "often that was so among test rows with such guesses, both classes weighted alike. All at 0.5: nothing "
                "was learned. Bars: limits that hold together.",
                alternative="Guessed probabilities from "
                f"{best.calibration[0][0]:.3f} to {best.calibration[-1][0]:.3f}, with shares from "
                f"{best.calibration[0][1]:.3f} to {best.calibration[-1][1]:.3f}.",
                svg=figures.calibration(best.calibration),
            )
        )
    return (*made, _growth(task, read, found))


def _growth(task: Task, read: _Read, found: Audit) -> Figure:
    """The certificate of parts of the sample and of the table, beside the least that any table gives."""
    certificate = found.certificate
    options: dict[str, Any] = {
        "delta": certificate.delta,
        "loss": task.loss,
        "method": certificate.method,
        "lipschitz": task.lipschitz,
    }
    points = []
    if read.sample.fewest >= LEAST_ROWS:
        for share in (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2):
            secrets, columns = read.sample.table(share)
            if len(secrets) < 2 * LEAST_ROWS:
                continue
            tally = task.tally(len(secrets)).add(secrets, columns if len(columns) > 1 else columns[0])
            points.append((len(secrets), certify_tally(tally, **options, seed=task.seed).advantage))
    points.append((read.rows, certificate.advantage))
    sizes = np.geomspace(min(100, points[0][0]), 10 * read.rows, 25).round().astype(int).tolist()
    least = [_least(size, task, certificate) for size in sizes]
    levels = {f"the best attack has shown {safe_text(found.low, toward='down')}": found.low} if found.low > 0 else {}
    marked = {}
    if task.require_advantage is not None:
        levels[f"allowed: {task.require_advantage:g}"] = task.require_advantage
        needed = _needed(task, certificate).get(task.require_advantage)
        marked = {f"{needed} rows, the least for {task.require_advantage:g}": needed} if needed else {}
    return Figure(
        title="The certificate against the number of rows",
        caption="Dots: certificates of random parts of the table, each valid alone, and of the whole, the last "
        "one. Line: what as many rows give where nothing leaks, half of each class.",
        alternative=f"The certified advantage falls from {points[0][1]:.3f} with {points[0][0]} rows to "
        f"{certificate.advantage:.3f} with {read.rows}.",
        svg=figures.growth(points, list(zip(sizes, least, strict=True)), levels=levels, marked=marked),
    )


def _least(rows: int, task: Task, certificate: Certificate) -> float:
    """The certificate of a table of so many rows whose output is constant."""
    half = max(1, rows // 2)
    tally = Tally(width=task.width(2 * half)).add([False, True], [0, 0], weights=[half, half])
    options: dict[str, Any] = {"loss": task.loss, "method": task.method, "lipschitz": task.lipschitz}
    return certify_tally(tally, delta=certificate.delta, **options).advantage


def _detail(
    task: Task,
    read: _Read,
    found: Audit,
    tried: tuple[Attempt, ...],
    slices: dict[Any, Certificate],
    failing: list[Any],
) -> dict[str, Any]:
    certificate = found.certificate
    return {
        "verdict": found.verdict,
        "met": found.met and not failing,
        "require_advantage": task.require_advantage,
        "low": found.low,
        "high": found.high,
        "failure_probability": found.failure_probability,
        "rows": read.rows,
        "attack_rows": read.sample.rows,
        "secret": {"column": task.secret, "positive": certificate.positive, "negative": certificate.negative},
        "outputs": [{"column": name, "kind": kind} for name, kind in zip(task.outputs, read.kinds, strict=True)],
        "noise": task.noise,
        "lipschitz": task.lipschitz,
        "method": certificate.method,
        "readings": {
            "advantage": certificate.advantage,
            "balanced_accuracy": certificate.balanced_accuracy,
            "auc": certificate.auc,
            "bits": certificate.bits,
            "tpr_at": {f"{rate:g}": float(certificate.tpr_at(rate)) for rate in FALSE_POSITIVE_RATES},
        },
        "attacks": [
            {
                "method": attempt.method,
                "advantage": list(attempt.rates.advantage),
                "true_positive_rate": attempt.rates.true_positive_rate,
                "false_positive_rate": attempt.rates.false_positive_rate,
                "epsilon_lower": attempt.epsilon,
                "at_rates": [
                    {
                        "aimed": aim,
                        "false_positive_rate": rates.false_positive_rate,
                        "true_positive_rate": rates.true_positive_rate,
                        "true_positive_limits": list(rates.true_positive_limits),
                    }
                    for aim, rates in attempt.at_rates
                ],
            }
            for attempt in tried
        ],
        "slices": [
            {"value": value, "positives": one.positives, "negatives": one.negatives, "advantage": one.advantage}
            for value, one in slices.items()
        ],
        "rows_needed": {f"{ceiling:g}": rows for ceiling, rows in _needed(task, certificate).items()},
    }
