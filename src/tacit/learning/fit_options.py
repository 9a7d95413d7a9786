"""The options of a private classifier: what follows from them, and checks before anything is paid for."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any, Self

from sklearn.linear_model import LogisticRegression

from ..core import validate
from ..core.errors import InputError
from ..ledger import Ledger
from .chunks import checked_key
from .mechanisms import Confirm, Mechanism, VoteQuota
from .mechanisms.cases import margins
from .mechanisms.registry import KINDS, MOMENTS, NAMES, asks_nobody, asks_records
from .moments import LEAST_EPSILON
from .shares import Shares

_UNDEMANDING: dict[str, object] = {
    "n_teachers": "auto",
    "student": None,
    "queries": None,
    "refusals": None,
    "teacher_accuracy": None,
    "engine": "local",
    "error_share": 0.0,
    "mechanism": "auto",
}
"""What options about teachers are if nothing was said about them."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """Parameters of a `PrivateClassifier`, as its `fit` found them."""

    estimator: Any
    epsilon: float
    delta: float
    n_teachers: int | str
    mechanism: str | Mechanism
    student: Any
    features: Any
    queries: int | str | None
    teacher_accuracy: Any
    refusals: int | None
    error_share: float
    ledger: Ledger | None
    classes: Any
    key: bytes | None
    engine: str
    random_state: Any

    @classmethod
    def of(cls, classifier: Any) -> Self:
        """The options of a classifier."""
        return cls(**{field.name: getattr(classifier, field.name) for field in dataclasses.fields(cls)})

    @property
    def made(self) -> Mechanism | None:
        """The mechanism, if the caller has made it."""
        return None if isinstance(self.mechanism, str) else self.mechanism

    @property
    def undemanding(self) -> bool:
        """Whether all is left to "auto": teachers would be logistic regression, and nothing was said about them."""
        given = {name: getattr(self, name) for name in _UNDEMANDING}
        if any(type(given[name]) is not type(usual) or given[name] != usual for name, usual in _UNDEMANDING.items()):
            return False
        return self.estimator is None or _plain(self.estimator)

    def shares(self, *, labels_only: bool, finding: bool) -> Shares:
        """How the budget is divided; `finding` says whether classes are found with noise."""
        sums = asks_nobody(self.mechanism)
        voting_records = isinstance(self.mechanism, VoteQuota)  # whose number nobody reads
        return Shares(
            epsilon=self.epsilon,
            delta=self.delta,
            counting=self.n_teachers == "auto" and not labels_only and not voting_records and not sums,
            finding=finding,
            mechanism=self.made,
            **{"least": LEAST_EPSILON} if sums else {},
        )

    def wanted(self, points: int) -> int | None:
        """The number of public records to ask about; None leaves it to the choice."""
        if self.queries is None:
            return None
        return points if self.queries == "all" else min(points, int(self.queries))

    def seed(self, key: bytes) -> Any:
        """The seed of the clusters: as given, else from the key, so that a run that goes on uses the same."""
        if self.random_state is not None:
            return self.random_state
        return int.from_bytes(hashlib.blake2b(key=key, digest_size=4, person=b"tacit medoids").digest())


def _plain(estimator: Any) -> bool:
    """Whether it is logistic regression as it comes, however long it may iterate."""
    if type(estimator) is not LogisticRegression:
        return False
    usual = LogisticRegression(max_iter=estimator.max_iter)
    return bool(estimator.get_params() == usual.get_params())


def check_options(options: Options, *, proposer: Any, shares: Shares, labels_only: bool) -> None:
    """Raise `InputError` for an option that cannot be used, by the names of `PrivateClassifier`'s parameters."""
    most = shares.left[0] / shares.epsilon
    share = validate.budget("error_share", options.error_share, at_least=0, below=most, remedy="use 0.1, or 0 for none")
    margins(options.teacher_accuracy)
    kind, mechanism = None, options.mechanism
    if isinstance(mechanism, str):
        kind = KINDS.get(validate.choice("mechanism", mechanism, NAMES, remedy="use 'auto'"))
    if asks_records(mechanism):
        _check_without_teachers(options, labels_only=labels_only)
    if asks_nobody(mechanism):
        _check_without_votes(options)
    if options.refusals is not None:
        validate.whole("refusals", options.refusals, at_least=1, remedy="leave it out to have it chosen")
        if kind is not None and not kind.refuses_by_number:
            raise InputError(
                "refusals",
                options.refusals,
                requirement=f"must be left out for {kind.name}, which stops when its refusals have cost the budget",
                remedy="leave it out, or use svt",
            )
    check_common(queries=options.queries, ledger=options.ledger, key=options.key)
    if share and (kind is None or not kind.informed or options.refusals is not None):
        informed = " or ".join(repr(name) for name, known in KINDS.items() if known.informed)
        raise InputError(
            "error_share",
            options.error_share,
            requirement=f"must be 0 unless mechanism is {informed} and refusals is None",
            remedy="leave it out: the estimate has nothing to set",
        )
    confirms = isinstance(mechanism, Confirm) if kind is None else kind.proposed
    if confirms != (proposer is not None) and mechanism != "auto":
        raise InputError(
            "proposer",
            None if proposer is None else type(proposer).__name__,
            requirement="must be given for mechanism='confirm', and for no other but 'auto'",
            remedy="pass a classifier that was fitted to other records, or choose 'gate'",
        )
    if not isinstance(mechanism, str):
        for name in ("epsilon", "delta"):
            cost = getattr(mechanism, name, None)
            if not isinstance(cost, int | float) or cost > getattr(shares, name):
                raise InputError(
                    f"mechanism.{name}",
                    cost,
                    requirement=f"must be a number ≤ {name} = {getattr(shares, name):.10g}",
                    remedy=f"pass a larger {name} to the classifier, or the name of a mechanism",
                )
        epsilon, delta = shares.left
        if shares.finding and (mechanism.epsilon > epsilon or mechanism.delta > delta):
            raise InputError(
                "classes",
                options.classes,
                requirement="must be named, as this mechanism leaves too little of the budget to find them",
                remedy="list them, from public knowledge, or pass a larger epsilon and delta to the classifier",
            )
        if shares.finding and getattr(mechanism, "classes", None) is not None:
            raise InputError(  # whether their number fits would tell how many labels there are, before any noise
                "classes",
                options.classes,
                requirement="must be named, as this mechanism is for a fixed number of them",
                remedy="list them, from public knowledge, or leave classes out of the mechanism",
            )
        if shares.counting and mechanism.epsilon > epsilon:
            raise InputError(
                "n_teachers",
                options.n_teachers,
                requirement="must be a number, as this mechanism leaves nothing of epsilon for counting records",
                remedy="say how many, from public knowledge, or pass a larger epsilon to the classifier",
            )


def check_common(*, queries: object, ledger: object, key: bytes | None) -> None:
    """Raise `InputError` for an option that all private estimators have, and that cannot be used."""
    if queries not in (None, "all"):
        validate.whole("queries", queries, at_least=1, remedy="use 'all', a number, or None")
    if ledger is not None and not isinstance(ledger, Ledger):
        raise InputError(
            "ledger", ledger, requirement="must be a Ledger", remedy="open one with tacit.ledger.Ledger.open"
        )
    checked_key(key)


def _check_without_votes(options: Options) -> None:
    """Refuse what is about teachers, queries or another student, where nobody votes."""
    unset = {
        "estimator": None,
        "n_teachers": "auto",
        "student": None,
        "queries": None,
        "refusals": None,
        "engine": "local",
    }
    for name, usual in unset.items():
        value = getattr(options, name)
        if value is not usual and (usual is None or value != usual):
            raise InputError(
                name,
                value if isinstance(value, int | str) else type(value).__name__,
                requirement=f"must be left out for mechanism={MOMENTS!r}, which trains nothing but one linear "
                "classifier and asks nobody",
                remedy="leave it out, or choose a mechanism that asks teachers",
            )


def _check_without_teachers(options: Options, *, labels_only: bool) -> None:
    """Refuse what is about teachers, where records vote."""
    for name, unset in (("n_teachers", "auto"), ("refusals", None)):
        if getattr(options, name) != unset:
            raise InputError(
                name,
                getattr(options, name),
                requirement="must be left out for mechanism='neighbours', which has no teachers and refuses nothing",
                remedy="leave it out, or choose a mechanism that asks teachers",
            )
    mechanism, changed = options.mechanism, 2 if labels_only else 1
    if isinstance(mechanism, VoteQuota) and mechanism.changed < changed:
        raise InputError(
            "mechanism.changed",
            mechanism.changed,
            requirement="must be 2 where only labels are protected: a changed label moves a vote between two counts",
            remedy="pass changed=2, or public records",
        )
