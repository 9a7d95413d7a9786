"""What a budget buys before any private record is touched: teachers, refusals, noise, and what may be expected.

`plan` sets the paper's theorems, with constants that are proven (`theory.learnability`), beside each mechanism's exact
accounting. It looks at no private data: it is told the learner's error, or the VC dimension of its class.

A row promises, with probability 1 − β: whenever no more than a tolerated number of teachers is wrong on a query, the
mechanism answers it, and rightly. The other queries, the hard ones, are counted as lost. What stands under *expected*
is no promise but the reading of the one model of votes that `expectations` states. The gate and confirmations promise
where a table is stored for the budget; elsewhere a table has to be searched for, and a row estimates what it will need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checked
from ..cards import card
from ..errors import InputError
from ..guarantee import SCHEMA, encoded
from ..numerics import last_true
from ..theory import accounting, learnability
from ..theory.divergences import gaussian_delta
from . import expectations, gate_design
from .expectations import RATIO
from .gate import Confirm, Gate

if TYPE_CHECKING:
    from ..report import Figure

NAMES = {
    "svt-faithful": "sparse vector, printed constants",
    "svt": "sparse vector, tight",
    "composition": "plain composition",
    "gnmax": "GNMax",
    "gate": "the gate",
    "confident-gnmax": "Confident-GNMax",
    "confirm": "confirm or deny",
}
"""Of mechanisms, in words."""

MECHANISMS = tuple(NAMES)
_EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # that are drawn

_CONFIDENT = 0.6  # of the votes for the winner, where no threshold is proven to serve
_PARTS = 4  # β is shared by teachers, hard queries, noise and the student
_REFUSAL_STEPS = 40  # of the search for a number of refusals where nothing is proven
_TABLES = ("gate", "confirm")  # what is run with a table of chances
_FLOOR = 1e-12  # no table refuses more rarely


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one mechanism does with the budget.

    `*_upper` and `answers_lower` are proven, except with the plan's β, under the error given; `expected_*` are the
    vote model's reading (None where no error was given). Misclassified is a query answered wrongly or not at all. An
    `estimated` row might promise with a table that has yet to be searched for: its numbers are about right, and nothing
    is proven. `delta_spent` of a table is proven when it is run, not by a plan: None.
    """

    mechanism: str
    feasible: bool
    estimated: bool
    verdict: str
    teachers: int
    teachers_needed: int | None
    records_per_teacher: int
    error: float
    refusals: int | None
    noise: float
    threshold: int | None
    votes_to_flip: int
    delta_spent: float | None
    answers_lower: int
    misclassified_upper: float
    student_error_upper: float | None
    expected_answers: float | None
    expected_misclassified: float | None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The inputs of `plan`, and one row a mechanism."""

    records: int
    queries: int
    epsilon: float
    delta: float
    beta: float
    error: float | Mapping[int, float] | None
    vc_dimension: int | None
    best_error: float
    classes: int
    teachers: int | None
    proposer_error: float | None
    rows: tuple[Row, ...]

    @property
    def feasible(self) -> bool:
        """Whether anything is promised at all."""
        return any(row.feasible for row in self.rows)

    @property
    def best(self) -> Row | None:
        """The row that promises the most, None if all are hopeless."""
        promised = [row for row in self.rows if row.feasible]
        return min(promised, key=lambda row: (row.misclassified_upper, row.teachers), default=None)

    def row(self, mechanism: str) -> Row:
        """The row of a mechanism by its name."""
        names = [row.mechanism for row in self.rows]
        name = checked.choice("mechanism", mechanism, names, remedy="confirm needs proposer_error")
        return self.rows[names.index(name)]

    def to_dict(self) -> dict[str, Any]:
        """Schema 1: the inputs, and the rows as a list of objects."""
        inputs = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "rows"}
        if isinstance(self.error, Mapping):
            inputs["error"] = {str(size): error for size, error in self.error.items()}
        return {"schema": SCHEMA, **encoded(inputs), "rows": [encoded(asdict(row)) for row in self.rows]}

    def teachers_needed(self, mechanism: str, *, epsilon: float) -> int | None:
        """The least number of teachers for a promise at another ε, had there been records enough; None if none is."""
        name = checked.choice("mechanism", mechanism, MECHANISMS, remedy="see tacit.learning.planning.MECHANISMS")
        _epsilon(epsilon)
        return _needed(name, replace(_setting(self), epsilon=epsilon, rough=True))

    def expected_right(self, mechanism: str, *, teachers: int) -> float | None:
        """The share of queries answered rightly with so many teachers, by the vote model; None without an error."""
        name = checked.choice("mechanism", mechanism, MECHANISMS, remedy="see tacit.learning.planning.MECHANISMS")
        checked.whole("teachers", teachers, at_least=1, remedy="say how many teachers vote")
        setting = replace(_setting(self), rough=True)
        run = _promised(name, teachers, setting) or _hoped(name, teachers, setting)
        expected = _expected(name, run, setting)
        return None if expected is None else expected[1] / self.queries

    def plot(self) -> Figure:
        """How many teachers each mechanism needs for a promise, against ε, as a notebook shows it."""
        from ..report import Figure, figures

        epsilons = sorted({*_EPSILONS, self.epsilon})
        needed = {
            NAMES[row.mechanism]: [self.teachers_needed(row.mechanism, epsilon=epsilon) for epsilon in epsilons]
            for row in self.rows
        }
        estimates = " Those of the gate are estimates where no table is stored for an ε." * any(
            row.mechanism == "gate" for row in self.rows
        )
        here = epsilons.index(self.epsilon)
        return Figure(
            title="Teachers that a promise needs",
            caption=f"For all of {self.queries} queries on which at most a third of the teachers are wrong. A "
            f"mechanism without a mark at an ε can promise nothing there.{estimates}",
            alternative="The larger ε, the fewer teachers: "
            + "; ".join(
                f"{name} {values[here] or 'no number'} at ε = {self.epsilon:g}" for name, values in needed.items()
            ),
            svg=figures.ranges(
                epsilons,
                needed,
                x_label="ε",
                y_label="teachers",
                marked=(self.epsilon, "this plan"),
                level=(self.records, "as many as there are records"),
            ),
        )

    def _repr_html_(self) -> str:
        budget = f"{self.records} records, {self.queries} queries, ε = {self.epsilon:g}, δ = {self.delta:g}"
        return card(budget, [(NAMES[row.mechanism], row.verdict) for row in self.rows])


def plan(
    records: int,
    queries: int,
    *,
    epsilon: float,
    delta: float,
    beta: float = 0.05,
    error: float | Mapping[int, float] | None = None,
    vc_dimension: int | None = None,
    best_error: float = 0.0,
    classes: int = 2,
    teachers: int | None = None,
    proposer_error: float | None = None,
) -> Plan:
    """What (ε, δ) buys from so many private records for so many public queries, by each mechanism.

    `error` is the average error of one teacher: a number that is taken to hold for chunks of the size that the plan
    comes to (check it there), or a learning curve {records: error}, measured on public or synthetic data; chunks
    smaller than its smallest size are not planned for. Or give `vc_dimension`, for a learner that minimises training
    errors over a binary class whose best member errs on `best_error`. With neither, teachers are taken to be always
    right: what is hopeless then is so for every learner. `beta` is the probability with which a promise may fail.
    With `proposer_error`, the share of queries for which a wrong label is proposed, there is a row for confirmations.
    """
    made = Plan(
        records=checked.whole("records", records, at_least=1, remedy="say how many private records there are"),
        queries=_queries(queries),
        epsilon=_epsilon(epsilon),
        delta=checked.number("delta", delta, at_least=1e-25, below=1, remedy="use about 1/n², e.g. 1e-10 for 1e5"),
        beta=checked.number("beta", beta, at_least=1e-12, below=1, remedy="use a small probability such as 0.05"),
        error=_error(error),
        vc_dimension=_dimension(vc_dimension, error, classes),
        best_error=_best(best_error, vc_dimension),
        classes=_classes(classes, records),
        teachers=_teachers(teachers, records),
        proposer_error=_proposer_error(proposer_error),
        rows=(),
    )
    left_out = set() if gate_design.manageable(made.epsilon, made.delta) else set(_TABLES)
    left_out |= {"confirm"} if made.proposer_error is None else set()
    setting = _setting(made)
    return replace(made, rows=tuple(_row(name, setting) for name in MECHANISMS if name not in left_out))


@dataclass(frozen=True, kw_only=True)
class _Setting:
    """A plan's inputs as the search takes them; `rough` settles for noise that is right to a few per cent."""

    records: int
    queries: int
    epsilon: float
    delta: float
    beta: float
    curve: tuple[tuple[int, float], ...] | None
    vc_dimension: int | None
    best_error: float
    classes: int
    teachers: int | None
    modelled: bool
    proposer_error: float = 0.0
    rough: bool = False

    @property
    def share(self) -> float:
        """The part of β that each of the promises may fail with."""
        return self.beta / _PARTS

    def wrong_proposals(self, name: str) -> int:
        """How many queries a mechanism loses to labels that were proposed wrongly."""
        return math.ceil(self.proposer_error * self.queries) if name == "confirm" else 0

    def error(self, teachers: int) -> float:
        """What one of so many teachers is known to err on at most; 1 where nothing is known."""
        size = self.records // teachers
        if self.vc_dimension is None:
            known = (error for records, error in self.curve or () if records <= size)
            return min(known, default=1.0)
        if size < 1:
            return 1.0
        find = learnability.realizable_error if self.best_error == 0 else learnability.agnostic_excess
        excess = find(size, vc_dimension=self.vc_dimension, failure_probability=self.share / teachers)
        return min(1.0, self.best_error + excess)

    @property
    def most(self) -> int:
        """The most teachers that can be trained: each needs a record of every class, and a place on the curve."""
        smallest = self.curve[0][0] if self.curve else 0
        return max(1, self.records // max(self.classes, smallest))


@dataclass(frozen=True, kw_only=True)
class _Run:
    """A mechanism's constants, and what they promise: all but `hard` queries answered rightly (None: nothing)."""

    teachers: int
    noise: float
    threshold: int | None
    refusals: int | None
    distance: int
    error: float
    hard: int | None = None
    delta_spent: float | None = 1.0
    estimated: bool = False


def _row(name: str, setting: _Setting) -> Row:
    needed = _needed(name, replace(setting, rough=True))
    if needed is not None and name in ("gnmax", "confident-gnmax"):
        needed = _needed(name, setting)  # the rough one has only told that it is worth while
    run = None
    if setting.teachers is not None:
        run = _promised(name, setting.teachers, setting)
    elif needed is not None and needed <= setting.most:
        run = _promised(name, needed, setting)
    if run is None:
        run = _hoped(name, setting.teachers or _many(setting), setting)
    m, feasible = setting.queries, run.hard is not None and not run.estimated
    hard = run.hard if feasible and run.hard is not None else m
    expected = _expected(name, run, setting)
    student = None
    if setting.vc_dimension is not None and feasible:
        student = learnability.student_error(
            m,
            wrong_labels=hard,
            vc_dimension=setting.vc_dimension,
            failure_probability=setting.share,
            best_error=setting.best_error,
        )
    return Row(
        mechanism=name,
        feasible=feasible,
        estimated=run.estimated and run.hard is not None,
        verdict=_verdict(name, run, needed, expected, setting),
        teachers=run.teachers,
        teachers_needed=needed,
        records_per_teacher=setting.records // run.teachers,
        error=run.error,
        refusals=run.refusals,
        noise=run.noise,
        threshold=run.threshold,
        votes_to_flip=run.distance,
        delta_spent=run.delta_spent,
        answers_lower=m - hard,
        misclassified_upper=hard / m,
        student_error_upper=student,
        expected_answers=None if expected is None else expected[0],
        expected_misclassified=None if expected is None else max(0.0, 1 - expected[1] / m),
    )


def _needed(name: str, setting: _Setting) -> int | None:
    """The least fixed point of k → error → T → votes to flip → k, by iteration from k = 1; None where it has none.

    Every step is monotone, so the iteration climbs to the least number of teachers of whom a third may be wrong.
    Records are not a limit here: a number given as error is taken at its word for every size.
    """
    teachers, m = 1, setting.queries
    while teachers <= 2**52 // 100:
        error = setting.error(teachers)
        if 3 * error >= 1:
            return None
        if name == "svt-faithful":
            enough = _printed_teachers(error, setting)
        else:
            hard = learnability.hard_queries(
                error, teachers=3, outvoted=0, queries=m, failure_probability=setting.share
            )
            hard += setting.wrong_proposals(name)
            if not _worth(hard, setting) or not _runs(name, min(m, hard + 1), setting):
                return None
            run = _constants(name, teachers, min(m, hard + 1), setting)
            enough = accounting.stable_teachers(run.distance, agreement=2 / 3)
        if enough <= teachers:
            return teachers
        teachers = enough
    return None


def _promised(name: str, teachers: int, setting: _Setting) -> _Run | None:
    """The constants with which so many teachers keep a promise, None if there are none.

    The more refusals are allowed, the more noise, the more votes a query needs, the more queries are hard, the more
    refusals are needed: from T = 1 the iteration climbs to the least T that is enough.
    """
    m, error, refusals = setting.queries, setting.error(teachers), 1
    if name == "svt-faithful":
        if _printed_teachers(error, setting) > teachers:
            return None
        refusals = min(m, learnability.printed_refusals(error, queries=m, failure_probability=setting.beta))
    while _runs(name, refusals, setting):
        run = _constants(name, teachers, refusals, setting)
        outvoted = learnability.tolerated_votes(teachers, distance=run.distance)
        if outvoted < 0:
            return None
        hard = learnability.hard_queries(
            error, teachers=teachers, outvoted=outvoted, queries=m, failure_probability=setting.share
        )
        hard += setting.wrong_proposals(name)
        if not _worth(hard, setting) or (run.delta_spent or 0.0) > setting.delta:
            return None
        if run.refusals is None or run.refusals >= min(m, hard + 1):
            return replace(run, hard=hard)
        if name == "svt-faithful":
            return None
        refusals = min(m, hard + 1)
    return None


def _runs(name: str, refusals: int, setting: _Setting) -> bool:
    """Whether there may be constants at all: tables are searched for up to some refusals, and refuse easy queries."""
    if name not in _TABLES:
        return True
    possible = gate_design.manageable(setting.epsilon, setting.delta) and setting.share / setting.queries >= _FLOOR
    return possible and refusals <= gate_design.MOST_REFUSALS


def _hoped(name: str, teachers: int, setting: _Setting) -> _Run:
    """The constants to run with where nothing is promised: the number of refusals that the vote model likes best."""
    if name == "svt-faithful":
        error = setting.error(teachers)
        printed = learnability.printed_refusals(error, queries=setting.queries, failure_probability=setting.beta)
        return _constants(name, teachers, min(setting.queries, printed), setting)
    if name == "confident-gnmax":
        return replace(_constants(name, teachers, 1, setting), threshold=round(_CONFIDENT * teachers))
    if name not in ("svt", *_TABLES):
        return _constants(name, teachers, 1, setting)
    grid: Sequence[int] = gate_design.STORED_REFUSALS
    if name == "svt":
        grid = sorted({max(1, round(t)) for t in np.geomspace(1, setting.queries, _REFUSAL_STEPS)})
    runs = [_constants(name, teachers, t, setting) for t in grid]
    return max(runs, key=lambda run: (_expected(name, run, setting) or (0.0, 0.0))[1])


def _many(setting: _Setting) -> int:
    """The most teachers whose error is known to stay below a third; 1 if not even one is known to."""
    low, high = 1, setting.most + 1
    while high - low > 1:
        teachers = (low + high) // 2
        low, high = (teachers, high) if 3 * setting.error(teachers) < 1 else (low, teachers)
    return low


def _worth(hard: int, setting: _Setting) -> bool:
    """Whether a promise says more than a blind guess."""
    return hard < setting.queries * (1 - 1 / setting.classes)


def _printed_teachers(error: float, setting: _Setting) -> int:
    m, beta = setting.queries, setting.beta
    refusals = min(m, learnability.printed_refusals(error, queries=m, failure_probability=beta))
    scale = accounting.printed_scale(setting.epsilon, setting.delta, refusals=refusals)
    return accounting.printed_teachers(
        setting.delta, scale=scale, refusals=refusals, queries=m, failure_probability=beta
    )


def _constants(name: str, teachers: int, refusals: int, setting: _Setting) -> _Run:
    """A mechanism's noise and threshold, and the votes to flip from which it answers all queries rightly."""
    epsilon, delta, m, share, classes = (
        setting.epsilon,
        setting.delta,
        setting.queries,
        setting.share,
        setting.classes,
    )
    threshold: int | None = None
    allowed: int | None = None
    spent: float | None = None
    estimated = False
    if name in ("svt", "svt-faithful"):
        allowed = refusals
        noise, threshold, spent = _sparse_vector(epsilon, delta, refusals, m if name == "svt-faithful" else None)
        distance = accounting.sparse_vector_distance(
            scale=noise, threshold=threshold, refusals=refusals, queries=m, failure_probability=share
        )
    elif name == "composition":
        noise, threshold, spent = _stable_release(epsilon, delta, m)
        distance = learnability.stable_release_distance(
            scale=noise, threshold=threshold, queries=m, failure_probability=share
        )
    elif name == "gnmax":
        noise, spent = _gaussian(epsilon, delta, m, 0, setting.rough)
        distance = learnability.gnmax_distance(sigma=noise, classes=classes, queries=m, failure_probability=share)
    elif name in _TABLES:
        allowed, noise, distance, estimated = _table(name, epsilon, delta, refusals, max(share / m, _FLOOR))
    else:
        noise, spent = _gaussian(epsilon, delta, m, m, setting.rough)
        distance = learnability.gnmax_distance(sigma=noise, classes=classes, queries=m, failure_probability=share / 2)
        slack = learnability.gnmax_test_margin(test_sigma=RATIO * noise, queries=m, failure_probability=share / 2)
        # The highest threshold that lets through every query on which no more are wrong than is tolerated.
        outvoted = max(0, learnability.tolerated_votes(teachers, distance=distance))
        threshold = max(0, teachers - outvoted - slack)
    return _Run(
        teachers=teachers,
        noise=noise,
        threshold=threshold,
        refusals=allowed,
        distance=distance,
        error=setting.error(teachers),
        delta_spent=spent,
        estimated=estimated,
    )


@cache
def _table(name: str, epsilon: float, delta: float, refusals: int, chance: float) -> tuple[int, float, int, bool]:
    """T, the votes by which refusals become rarer e times, the distance of refusals that rare, and if it is a guess."""
    labels = name == "gate"
    stored = gate_design.stored_refusals(epsilon, delta, at_least=refusals, labels=labels)
    if stored is None:
        step = gate_design.likely_step(epsilon, delta, refusals=refusals)
        return refusals, 1 / step, max(0, gate_design.likely_distance(chance, step=step, labels=labels)), True
    if labels:
        gate = Gate(epsilon=epsilon, delta=delta, refusals=stored)
        return stored, 1 / gate.design.step, gate.distance(chance=chance), False
    confirm = Confirm(epsilon=epsilon, delta=delta, refusals=stored)
    return stored, 1 / confirm.design.step, max(0, confirm.lead(chance=chance)), False


@cache
def _sparse_vector(epsilon: float, delta: float, refusals: int, queries: int | None) -> tuple[float, int, float]:
    if queries is None:
        scale = accounting.sparse_vector_scale(epsilon, delta, refusals=refusals)
        threshold = accounting.sparse_vector_threshold(epsilon, delta, scale=scale, refusals=refusals)
    else:
        scale = accounting.printed_scale(epsilon, delta, refusals=refusals)
        threshold = accounting.printed_threshold(delta, scale=scale, queries=queries)
    spent = accounting.sparse_vector_delta(epsilon, scale=scale, threshold=threshold, refusals=refusals)
    return scale, threshold, spent


@cache
def _stable_release(epsilon: float, delta: float, queries: int) -> tuple[float, int, float]:
    scale = accounting.stable_release_scale(epsilon, delta, queries=queries)
    threshold = accounting.stable_release_threshold(epsilon, delta, scale=scale, queries=queries)
    return (
        scale,
        threshold,
        accounting.stable_release_delta(epsilon, scale=scale, threshold=threshold, queries=queries),
    )


@cache
def _gaussian(epsilon: float, delta: float, answers: int, tests: int, rough: bool) -> tuple[float, float]:
    """A σ that was seen to be enough, within 0.1 % of the mechanism's own, which takes a second to find; and its δ.

    Continuous noise gives the first guess. A rough answer stops there.
    """
    most = last_true(
        lambda distance: gaussian_delta(epsilon, distance=distance) <= delta,
        holds=0.0,
        fails=2 * math.sqrt(2 * epsilon) + 40.0,
    )
    sigma = max(0.5, math.sqrt(2 * answers + tests / RATIO**2) / most)
    if rough:
        return sigma, delta
    slack = 1e-4
    while True:
        tried = sigma * (1 + slack)
        spent = accounting.gnmax_delta(epsilon, sigma=tried, answers=answers, test_sigma=RATIO * tried, tests=tests)
        if spent <= delta:
            return tried, spent
        slack *= 2


def _expected(name: str, run: _Run, setting: _Setting) -> tuple[float, float] | None:
    """Queries answered, and answered rightly, by the vote model."""
    if not setting.modelled or run.error >= 1:
        return None
    return expectations.expected(
        name,
        run.teachers - 2 * np.rint(run.teachers * expectations.wrong_shares(run.error)),
        teachers=run.teachers,
        queries=setting.queries,
        noise=run.noise,
        threshold=run.threshold,
        refusals=run.refusals,
        classes=setting.classes,
        proposer_error=setting.proposer_error,
    )


def _verdict(name: str, run: _Run, needed: int | None, expected: tuple[float, float] | None, setting: _Setting) -> str:
    size, m, wrong = setting.records // run.teachers, setting.queries, f"{100 * run.error:.3g} %"
    if run.hard is not None:
        promise = f"{run.teachers} teachers of {size} records answer at least {m - run.hard} of {m} queries rightly"
        condition = f"if they err on {wrong} on average at most"
        if setting.vc_dimension is not None:
            condition = f"and err on {wrong} at most"
        elif run.error == 0:
            condition = "if they are always right"
        if name == "confirm":
            condition += f" and proposals err on {100 * setting.proposer_error:.3g} % at most"
        if run.estimated:
            return (
                f"An estimate, no promise: about {promise}, {condition}; a table for this budget is not stored but "
                "searched for when it is run, within a minute, and proven then."
            )
        return f"Feasible: {promise}, except with probability {setting.beta:g}, {condition}."
    if 3 * run.error >= 1:
        why = f"of teachers with {size} records no error below {wrong} is known, and a third is too much"
    elif name in _TABLES and (doubtful := _doubtful(name, setting)):
        why = doubtful
    elif needed is None and setting.teachers is None:
        why = "more teachers have fewer records each and err more, so that no number of them is enough"
        if setting.error(1) == run.error:
            why = f"teachers that err on {wrong} may leave too many queries in doubt, however many they are"
    elif name == "svt-faithful" and needed is not None and needed > run.teachers:
        why = f"the printed constants need {needed} teachers, and {run.teachers} can be had"
    elif run.distance > (run.teachers - 1) // 2:
        most = (run.teachers - 1) // 2
        why = f"an answer needs {run.distance} votes to flip, and {run.teachers} teachers give {most} at most"
    else:
        why = f"{run.teachers} teachers that err on {wrong} may leave too many queries in doubt"
    hopeless = "Hopeless"
    if expected is not None and expected[1] > m / 2:
        hopeless = f"Hopeless to promise, though the vote model expects {expected[1]:.0f} of {m} right answers"
    return f"{hopeless}: {why}; {_help(name, needed, setting)}."


def _doubtful(name: str, setting: _Setting) -> str:
    """Why no table can be enough, however many the teachers; empty if that is not why."""
    if setting.share / setting.queries < _FLOOR:
        return f"no table refuses as rarely as beta = {setting.beta:g} asks for on {setting.queries} queries"
    error = setting.error(setting.teachers or 1)
    teachers = 2 if setting.teachers else 3  # of whom none may be wrong: a half at most, or a third as in `_needed`
    least = setting.wrong_proposals(name) + learnability.hard_queries(
        error, teachers=teachers, outvoted=0, queries=setting.queries, failure_probability=setting.share
    )
    most = gate_design.MOST_REFUSALS
    return f"{least} queries may be in doubt, and tables end at {most} refusals" if least >= most else ""


def _help(name: str, needed: int | None, setting: _Setting) -> str:
    """What would make it feasible, tried by doubling and halving one thing at a time."""
    rough = replace(setting, rough=True)

    def kept(changed: _Setting) -> bool:
        teachers = changed.teachers
        if teachers is None:
            found = _needed(name, changed)
            return found is not None and found <= changed.most
        return _promised(name, teachers, changed) is not None

    ways = []
    if setting.teachers is not None and needed is not None and needed <= setting.most:
        ways.append(f"more teachers (e.g. {needed})")
    queries = next((m for m in _halves(setting.queries) if kept(replace(rough, queries=m))), None)
    if queries is not None:
        ways.append(f"fewer queries (e.g. {queries})")
    epsilons = (setting.epsilon * 2**power for power in range(1, 8))
    epsilon = next((value for value in epsilons if value <= 100 and kept(replace(rough, epsilon=value))), None)
    if epsilon is not None:
        ways.append(f"a larger epsilon (e.g. {epsilon:.3g})")
    if setting.teachers is None:
        sizes = (setting.records * 2**power for power in range(1, 21))
        records = next((n for n in sizes if n < 2**50 and kept(replace(rough, records=n))), None)
        if records is not None:
            ways.append(f"more records (e.g. {records})")
    if not ways:
        return "a better learner would help, or another mechanism"
    return f"{' or '.join([', '.join(ways[:-1]), ways[-1]] if len(ways) > 1 else ways)} would help"


def _halves(queries: int) -> list[int]:
    found = []
    while queries > 1:
        queries //= 2
        found.append(queries)
    return found


def _setting(made: Plan) -> _Setting:
    curve: tuple[tuple[int, float], ...] | None = None
    if isinstance(made.error, Mapping):
        curve = tuple(sorted(made.error.items()))
    elif made.vc_dimension is None:
        curve = ((0, made.error or 0.0),)
    return _Setting(
        records=made.records,
        queries=made.queries,
        epsilon=made.epsilon,
        delta=made.delta,
        beta=made.beta,
        curve=curve,
        vc_dimension=made.vc_dimension,
        best_error=made.best_error,
        classes=made.classes,
        teachers=made.teachers,
        modelled=made.error is not None,
        proposer_error=made.proposer_error or 0.0,
    )


def _epsilon(value: object) -> float:
    return checked.number("epsilon", value, at_least=1e-3, at_most=100, remedy="use about 1")


def _queries(value: object) -> int:
    queries = checked.whole("queries", value, at_least=1, remedy="say how many queries are asked")
    if queries > 10**6:
        raise InputError("queries", queries, requirement="must be at most 1e6", remedy="label fewer, train a student")
    return queries


def _error(value: object) -> float | dict[int, float] | None:
    remedy = "give a share of wrong answers such as 0.05, or {records: error} with several"
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return checked.number("error", value, at_least=0, at_most=1, remedy=remedy)
    if not value:
        raise InputError("error", value, requirement="must not be empty", remedy=remedy)
    return {
        checked.whole("a size in error", size, at_least=1, remedy=remedy): checked.number(
            f"the error at {size} records", error, at_least=0, at_most=1, remedy=remedy
        )
        for size, error in value.items()
    }


def _dimension(value: object, error: object, classes: object) -> int | None:
    if value is None:
        return None
    dimension = checked.whole(
        "vc_dimension", value, at_least=1, remedy="use d + 1 for linear classifiers in d dimensions"
    )
    if error is not None:
        raise InputError(
            "vc_dimension", value, requirement="must be left out where error is given", remedy="keep one of the two"
        )
    if classes != 2:
        raise InputError(
            "vc_dimension", value, requirement="must go with two classes", remedy="give error for more classes"
        )
    return dimension


def _best(value: object, vc_dimension: object) -> float:
    best = checked.number("best_error", value, at_least=0, below=1, remedy="use 0 if some classifier is always right")
    if best and vc_dimension is None:
        raise InputError(
            "best_error", value, requirement="must go with vc_dimension", remedy="give the whole error as error"
        )
    return best


def _classes(value: object, records: int) -> int:
    classes = checked.whole("classes", value, at_least=2, remedy="say how many classes there are")
    if classes > records:
        raise InputError("classes", value, requirement="must not exceed records", remedy="use fewer classes")
    return classes


def _proposer_error(value: object) -> float | None:
    if value is None:
        return None
    return checked.number("proposer_error", value, at_least=0, below=1, remedy="give a share such as 0.05")


def _teachers(value: object, records: int) -> int | None:
    if value is None:
        return None
    teachers = checked.whole("teachers", value, at_least=1, remedy="leave it out to have it chosen")
    if teachers > records:
        raise InputError(
            "teachers", teachers, requirement=f"must not exceed records = {records}", remedy="each needs a record"
        )
    return teachers
