"""What a privacy budget buys, before any private record is touched: teachers, refusals, noise and answers.

`plan` combines the paper's theorems, with constants that are proven (`theory.learnability`), with the exact accounting
of each mechanism. It reads no private data: the caller states the learner's error, or the VC dimension of its class.

A row promises, except with the failure probability: whenever no more than a tolerated number of teachers is wrong on a
query, the mechanism answers it correctly. All other queries, the hard ones, count as lost. Numbers called *expected*
are no promise: they come from the model of votes in `expectations`. The gate and confirmations promise something where
a table is stored for the budget. Elsewhere a table has to be searched for, and their rows are estimates.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ..core import validate
from ..core.deprecation import renamed
from ..core.display import Carded, Rows
from ..core.encoding import SCHEMA, encoded
from ..core.errors import InputError
from ..theory import learnability
from . import councils
from .intended import Intention, intended
from .mechanisms.kind import PlannedKind
from .mechanisms.registry import KINDS
from .mechanisms.setting import Setting
from .verdicts import helping, verdict

if TYPE_CHECKING:
    from ..report import Figure

MECHANISMS = (
    *("svt-faithful", "svt", "svt-adaptive", "stable"),
    *("gnmax", "gnmax-winners", "gate", "confident-gnmax", "confirm"),
)
"""In the order of a plan's rows: the paper's own first."""
_REMEDY = "see tacit.learning.planning.MECHANISMS"

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""That are drawn."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one mechanism does with the budget.

    Attributes
    ----------
    mechanism
        Its name.
    feasible
        Whether something about its answers is proven.
    estimated
        Whether the row is an estimate, for a table that has yet to be searched for. Nothing is proven then.
    verdict
        The row in one sentence.
    teachers, teachers_needed
        The number of teachers in this row, and the smallest for which something is proven, None if there is none.
    records_per_teacher, error
        The records of each teacher, and the error that teachers are taken to have.
    refusals, noise, threshold
        The constants of the mechanism, None where it has none.
    votes_to_flip
        The votes to flip from which a query is answered correctly.
    delta_spent
        The δ that the constants spend. None for a table: that is proven when it is run.
    answers_lower, misclassified_upper
        Proven, except with the plan's failure probability: the number of right answers, and the share of queries that
        are answered wrongly or not at all.
    student_error_upper
        Proven in the same way: the error of a student, if a VC dimension was given.
    expected_answers, expected_misclassified
        What the model of votes expects; None if no error was given.
    theorem
        The functions of `tacit.theory` that prove `answers_lower`, `teachers_needed` and `student_error_upper`.
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
    theorem: tuple[str, ...]


@renamed(beta="failure_probability", proposer_error="public_model_error")
@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Carded):
    """The result of `plan`: its inputs, and a row for each mechanism.

    Attributes
    ----------
    records, queries, epsilon, delta, failure_probability
        The inputs of `plan`.
    error, vc_dimension, best_error, classes, teachers, public_model_error
        The inputs of `plan`.
    rows
        A row for each mechanism.
    """

    records: int
    queries: int
    epsilon: float
    delta: float
    failure_probability: float
    error: float | Mapping[int, float] | None
    vc_dimension: int | None
    best_error: float
    classes: int
    teachers: int | None
    public_model_error: float | None
    rows: tuple[Row, ...]

    @property
    def feasible(self) -> bool:
        """Whether any row promises something."""
        return any(row.feasible for row in self.rows)

    @property
    def best(self) -> Row | None:
        """The row that promises the most right answers; None if no row promises any.

        Teachers with hardly any records count where no others promise anything: few learners keep to what is assumed
        of them.
        """

        def rank(row: Row) -> tuple[bool, float, int]:
            return row.records_per_teacher < councils.LEAST, row.misclassified_upper, row.teachers

        return min((row for row in self.rows if row.feasible), key=rank, default=None)

    def row(self, mechanism: str) -> Row:
        """The row of a mechanism, by its name."""
        names = [row.mechanism for row in self.rows]
        return self.rows[names.index(_named(mechanism, names, remedy="confirm needs public_model_error").name)]

    def to_dict(self) -> dict[str, Any]:
        """The plan in plain JSON types: the inputs, and the rows as a list of objects."""
        inputs = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "rows"}
        if isinstance(self.error, Mapping):
            inputs["error"] = {str(size): error for size, error in self.error.items()}
        return {"schema": SCHEMA, **encoded(inputs), "rows": [encoded(asdict(row)) for row in self.rows]}

    def teachers_needed(self, mechanism: str, *, epsilon: float) -> int | None:
        """The smallest number of teachers that promises something at another ε, if there were enough records.

        Parameters
        ----------
        mechanism
            The name of the mechanism.
        epsilon
            The other ε.

        Returns
        -------
        The number, or None if no number is enough.
        """
        kind = _named(mechanism)
        _epsilon(epsilon)
        return kind.needed_teachers(replace(_setting(self), epsilon=epsilon, rough=True))

    def helping(self, mechanism: str) -> dict[str, float]:
        """What would make a mechanism that is not feasible promise something, as the verdict of its row says.

        Parameters
        ----------
        mechanism
            The name of the mechanism.

        Returns
        -------
        The new value by the name of the one input to change; empty if only a better learner helps.
        """
        return helping(_named(mechanism), self.row(mechanism).teachers_needed, _setting(self))

    def expected_right(self, mechanism: str, *, teachers: int) -> float | None:
        """The share of right answers that the model of votes expects with another number of teachers.

        Parameters
        ----------
        mechanism
            The name of the mechanism.
        teachers
            The number of teachers.

        Returns
        -------
        The share, or None if no error was given.
        """
        kind = _named(mechanism)
        validate.whole("teachers", teachers, at_least=1, remedy="say how many teachers vote")
        setting = replace(_setting(self), rough=True)
        found = kind.outlook(kind.promised(teachers, setting) or kind.hoped(teachers, setting), setting)
        return None if found is None else found[1] / self.queries

    def intended(self, *, epsilon: float | None = None) -> Intention:
        """What `PrivateClassifier` and `tacit learn` do by default with this budget, and what they expect of it.

        Of the inputs, they know what can be said to them: numbers, and an error that is a number below a half. They
        count records with noise, and find the classes with noise. It is about teachers: where two classes are to be
        told apart by a linear classifier, `tacit learn` may release sums instead, which needs none.

        Parameters
        ----------
        epsilon
            Another ε.

        Returns
        -------
        The intention.
        """
        stated = isinstance(self.error, float | int) and self.error < 0.5
        return intended(
            self.records,
            self.queries,
            epsilon=self.epsilon if epsilon is None else _epsilon(epsilon),
            delta=self.delta,
            classes=self.classes,
            teacher_accuracy=1 - float(self.error) if stated else None,  # type: ignore[arg-type]  # a number
            teachers=self.teachers,
        )

    def plot(self) -> Figure:
        """Draw the number of teachers that each mechanism needs for a promise, against ε."""
        from ..report import Figure, figures

        epsilons = sorted({*EPSILONS, self.epsilon})
        needed = {
            row.mechanism: [self.teachers_needed(row.mechanism, epsilon=epsilon) for epsilon in epsilons]
            for row in self.rows
        }
        marked = {name: values for name, values in needed.items() if any(values)} or needed
        absent = [name for name in needed if name not in marked]
        unmarked = f"; {', '.join(absent)} {'has' if len(absent) == 1 else 'have'} none" * bool(absent)
        caption = (
            f"For all of {self.queries} queries on which at most a third of the teachers are wrong. A mechanism "
            f"without a mark at an ε can promise nothing there{unmarked}."
        )
        caveats = (KINDS[name].caveat for name in marked)
        here = epsilons.index(self.epsilon)
        return Figure(
            title="Teachers that a promise needs",
            caption=" ".join([caption, *filter(None, caveats)]),
            alternative="The larger ε, the fewer teachers: "
            + "; ".join(
                f"{name} {values[here] or 'no number'} at ε = {self.epsilon:.10g}" for name, values in needed.items()
            ),
            svg=figures.ranges(
                epsilons,
                marked,
                x_label="ε",
                y_label="teachers",
                marked=(self.epsilon, "this plan"),
                level=(self.records, "as many as there are records"),
            ),
        )

    def _card(self) -> tuple[str, Rows]:
        budget = f"{self.records} records, {self.queries} queries, ε = {self.epsilon:.10g}, δ = {self.delta:.10g}"
        return budget, [(row.mechanism, row.verdict) for row in self.rows]


@renamed(beta="failure_probability", proposer_error="public_model_error")
def plan(
    records: int,
    queries: int,
    *,
    epsilon: float,
    delta: float,
    failure_probability: float = 0.05,
    error: float | Mapping[int, float] | None = None,
    vc_dimension: int | None = None,
    best_error: float = 0.0,
    classes: int = 2,
    teachers: int | None = None,
    public_model_error: float | None = None,
) -> Plan:
    """Plan what (ε, δ) buys from private records for public queries, with each mechanism.

    Parameters
    ----------
    records
        The number of private records.
    queries
        The number of public queries.
    epsilon, delta
        The budget.
    failure_probability
        The probability with which a promise about answers may fail. Privacy does not depend on it.
    error
        The average error of one teacher. A number is taken to hold for chunks of the size that the plan comes to:
        check it there. A learning curve {records: error}, measured on public or synthetic data, is not used for chunks
        smaller than its smallest size. Without it and without `vc_dimension`, teachers are taken to be always right:
        what is hopeless then is hopeless for every learner.
    vc_dimension
        Instead of `error`: the VC dimension of a binary class over which the learner minimises training errors.
    best_error
        The error of the best classifier of that class.
    classes
        The number of classes.
    teachers
        The number of teachers; the smallest that is enough unless given.
    public_model_error
        The error of a model of labelled public records, which proposes labels. With it there is a row for "confirm".

    Returns
    -------
    The plan.
    """
    made = Plan(
        records=validate.whole("records", records, at_least=1, remedy="say how many private records there are"),
        queries=_queries(queries),
        epsilon=_epsilon(epsilon),
        delta=validate.number("delta", delta, at_least=1e-25, below=1, remedy="use about 1/n², e.g. 1e-10 for 1e5"),
        failure_probability=validate.number(
            "failure_probability",
            failure_probability,
            at_least=1e-12,
            below=1,
            remedy="use a small probability such as 0.05",
        ),
        error=_error(error),
        vc_dimension=_dimension(vc_dimension, error, classes),
        best_error=_best(best_error, vc_dimension),
        classes=_classes(classes, records),
        teachers=_teachers(teachers, records),
        public_model_error=_public_model_error(public_model_error),
        rows=(),
    )
    setting, proposals = _setting(made), made.public_model_error is not None
    kinds = (KINDS[name] for name in MECHANISMS)
    rows = (_row(kind, setting) for kind in kinds if kind.available(made.epsilon, made.delta, proposals=proposals))
    return replace(made, rows=tuple(rows))


def _row(kind: PlannedKind, setting: Setting) -> Row:
    needed = kind.needed_teachers(setting)
    run = None
    if setting.teachers is not None:
        run = kind.promised(setting.teachers, setting)
    elif needed is not None and needed <= setting.most:
        run = kind.promised(needed, setting)
    if run is None:
        run = kind.hoped(setting.teachers or setting.many, setting)
    found, m = run.constants, setting.queries
    feasible = run.hard is not None and not found.estimated
    hard = run.hard if feasible and run.hard is not None else m
    answers = kind.outlook(run, setting)
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
        mechanism=kind.name,
        feasible=feasible,
        estimated=found.estimated and run.hard is not None,
        verdict=verdict(kind, run, needed, answers, setting),
        teachers=run.teachers,
        teachers_needed=needed,
        records_per_teacher=setting.records // run.teachers,
        error=run.error,
        refusals=found.refusals,
        noise=found.noise,
        threshold=found.threshold,
        votes_to_flip=found.distance,
        delta_spent=found.delta_spent,
        answers_lower=m - hard,
        misclassified_upper=hard / m,
        student_error_upper=student,
        expected_answers=None if answers is None else answers[0],
        expected_misclassified=None if answers is None else max(0.0, 1 - answers[1] / m),
        theorem=kind.theorems(setting, found.refusals),
    )


def _setting(made: Plan) -> Setting:
    curve: tuple[tuple[int, float], ...] | None = None
    if isinstance(made.error, Mapping):
        curve = tuple(sorted(made.error.items()))
    elif made.vc_dimension is None:
        curve = ((0, made.error or 0.0),)
    return Setting(
        records=made.records,
        queries=made.queries,
        epsilon=made.epsilon,
        delta=made.delta,
        failure_probability=made.failure_probability,
        curve=curve,
        vc_dimension=made.vc_dimension,
        best_error=made.best_error,
        classes=made.classes,
        teachers=made.teachers,
        modelled=made.error is not None,
        proposer_error=made.public_model_error or 0.0,
    )


def _named(value: object, names: Sequence[str] = MECHANISMS, *, remedy: str = _REMEDY) -> PlannedKind:
    if isinstance(value, str) and value == "composition":  # that plans called it; to be refused in the next version
        warnings.warn("say 'stable' for 'composition', as everywhere else", DeprecationWarning, stacklevel=3)
        value = "stable"
    return KINDS[validate.choice("mechanism", value, names, remedy=remedy)]


def _epsilon(value: object) -> float:
    return validate.number("epsilon", value, at_least=1e-3, at_most=100, remedy="use about 1")


def _queries(value: object) -> int:
    queries = validate.whole("queries", value, at_least=1, remedy="say how many queries are asked")
    if queries > 10**6:
        raise InputError("queries", queries, requirement="must be at most 1e6", remedy="label fewer, train a student")
    return queries


def _error(value: object) -> float | dict[int, float] | None:
    remedy = "give a share of wrong answers such as 0.05"
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return validate.number("error", value, at_least=0, at_most=1, remedy=remedy)
    if not value:
        raise InputError("error", value, requirement="must not be empty", remedy=remedy)
    return {
        validate.whole("a size in error", size, at_least=1, remedy=remedy): validate.number(
            f"the error at {size} records", error, at_least=0, at_most=1, remedy=remedy
        )
        for size, error in value.items()
    }


def _dimension(value: object, error: object, classes: object) -> int | None:
    if value is None:
        return None
    dimension = validate.whole(
        "vc_dimension", value, at_least=1, remedy="use d + 1 for linear classifiers in d dimensions"
    )
    if error is not None:
        raise InputError(
            "vc_dimension", value, requirement="must be left out where `error` is given", remedy="keep one of the two"
        )
    if classes != 2:
        raise InputError(
            "vc_dimension", value, requirement="must go with two classes", remedy="give `error` for more classes"
        )
    return dimension


def _best(value: object, vc_dimension: object) -> float:
    best = validate.number("best_error", value, at_least=0, below=1, remedy="use 0 if some classifier is always right")
    if best and vc_dimension is None:
        raise InputError(
            "best_error", value, requirement="must go with `vc_dimension`", remedy="give the whole error as `error`"
        )
    return best


def _classes(value: object, records: int) -> int:
    classes = validate.whole("classes", value, at_least=2, remedy="say how many classes there are")
    if classes > records:
        raise InputError("classes", value, requirement="must not exceed `records`", remedy="use fewer classes")
    return classes


def _public_model_error(value: object) -> float | None:
    if value is None:
        return None
    return validate.number("public_model_error", value, at_least=0, below=1, remedy="give a share such as 0.05")


def _teachers(value: object, records: int) -> int | None:
    if value is None:
        return None
    teachers = validate.whole("teachers", value, at_least=1, remedy="leave it out to have it chosen")
    if teachers > records:
        raise InputError(
            "teachers", teachers, requirement=f"must not exceed `records` = {records}", remedy="each needs a record"
        )
    return teachers
