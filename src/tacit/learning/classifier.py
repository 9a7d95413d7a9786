"""A private classifier: teachers vote on public records, a mechanism answers, and a student learns from the answers.

It is the paper's Algorithm 3, with any of the mechanisms, as a scikit-learn classifier.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from ..core import validate
from ..core.deprecation import renamed
from ..core.errors import InputError
from ..core.guarantee import Guarantee
from ..core.rounding import down
from ..ledger import Ledger
from ..runtime import private_files, run_folder
from ..theory.accounting import laplace_scale
from . import interrupted, repeated_fits
from .asking import answers, labels_and_counts
from .assumptions import neighbours
from .choice import (
    Choice,
    Margins,
    callers_choice,
    choice,
    estimate_cost,
    margins,
    number_of_teachers,
    possible_margins,
    prospects,
)
from .columns import Columns
from .drawn import Draws
from .dry_run import fit_student, made_up_answers
from .fit_options import check_options
from .frames import rule_for
from .held_out import AgreementEstimate, ErrorEstimate, private_agreement, private_error
from .labels import UNNAMED, column, distinct, named, numbered, typed
from .mechanisms import Mechanism, VoteQuota
from .mechanisms.gate import Tabled
from .mechanisms.registry import KINDS, MOMENTS, NEIGHBOURS
from .moments import LEAST_EPSILON, SUMMED, MomentClassifier, NoisySums, suits, sums_by_class, unit_rows
from .nearby import VOTERS, NearbyVoters, expected_votes, nearby_choice
from .overlap import REMEDY, require_other_rows
from .owners import order, owners, parts, remember
from .proposals import Proposer
from .published import PublishedClassifier
from .queries import medoids
from .release import Release
from .shares import ANSWERS, CLASSES, COUNT, Shares
from .students import Propagated, fitting
from .teachers import Teachers
from .transformed import check_width, each_alone, warn_of_transformer

_HELD_OUT = 5
"""One record in this many is set aside for the error estimate."""
_FAILURE = 0.05
"""The failure probability for which Theorem 3.2 turns that estimate into refusals."""
_EXPECTED_ERROR = 0.2
"""The error that is assumed in dry runs, until the estimate is paid for."""
_NOTED = "sums"
"""The name of the note that holds released sums."""
_CHOSEN = "chosen"
"""The name of the note that holds what an estimate has chosen."""
_PROBES = 500
"""The most public records on which the agreement of teachers is estimated."""
_FEW = 200
"""The number of public records on which a student is tried with a class that is answered once."""


@renamed(expected="teacher_accuracy")
class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A scikit-learn classifier that is (ε, δ)-differentially private for its training records.

    `fit(X, y, X_public)` trains teachers on disjoint chunks of the private records, asks a mechanism about public
    records, and fits a student to the answers. The guarantee compares data with and without one record, or one person's
    records if `fit` gets `ids`. Without `X_public` only labels are protected: records are put in order and split by
    keyed hashes of their features, half of them lose their labels and become the public records, and the guarantee
    compares data that differ in one label, or in the labels of one person.

    Parameters
    ----------
    estimator
        The classifier that teachers are clones of; logistic regression unless given.
    epsilon
        The whole cost of one `fit`. Fitting again costs again, also in a search or in cross-validation: from the second
        fit on the same records on, a `PrivacyWarning` says what all of them cost together.
    delta
        About 1/n².
    n_teachers
        The number of teachers. "auto" chooses it by the budget, the public records and the number of private records,
        or of people if there are ids. That number is private, so it is read with noise, for a hundredth of ε; if only
        labels are private, it is free.
    mechanism
        "svt", "svt-faithful", "gnmax", "confident-gnmax", "stable", "gate", "confirm", an object of `mechanisms`, or
        "auto", which chooses by expected votes and says why in `choice_`. "neighbours" trains no teachers: private
        records vote on public ones near them, each a few times, so that the number of queries costs nothing. It is
        not model-agnostic: it is a nearest-neighbour vote in `features`, and "auto" does not consider it. "moments"
        asks nobody: sums of `features` by class are released once with noise, and the student is the linear classifier
        that follows from them (`MomentClassifier`). It is not model-agnostic either; "auto" takes it for two classes if
        all about teachers is left to it, and public features and the number of records suit (`moments.suits`).
    student
        Any classifier; the estimator unless given, or for "neighbours" `students.Propagated` with the estimator in the
        end. Semi-supervised ones get −1 for points without an answer, others only points with one. One whose `fit`
        takes `counts` (`students.Propagated`) gets noisy counts from GNMax or "neighbours" at the same cost.
    features
        A transformer, fitted to the public records alone, in whose space teachers learn, neighbours are near and
        queries are chosen. The student gets the points as they are.
    queries
        "all" public records, or a number of them, medoids of clusters; None leaves it to the choice.
    teacher_accuracy
        The share of teachers expected to be right, or counts of public or made-up votes; constants are chosen by it,
        and the number of teachers, for which it is that of teachers with many records. With None, shares from 0.6 to 1
        are thought possible; where it helps, at most a tenth of ε then pays for an estimate of how far teachers agree.
    refusals
        The T of "svt", "gate" or "confirm"; None leaves it to the choice, or to the error estimate.
    error_share
        The share of ε for the paper's Remark 1: a private estimate of the teachers' error, on a fifth of the records,
        sets T.
    ledger
        A `tacit.ledger.Ledger`. The cost is spent there before the first answer is computed, and answers are noted
        there before they are released. A fit that exceeds its budget is refused, in whatever process it runs.
    classes
        All labels that may occur, from public knowledge. None takes the proposer's, if there is one; else the labels
        that enough records hold are found with noise, for a twentieth of ε and a tenth of δ, and records with other
        labels are left out.
    columns
        The `Columns` that turns tables into numbers, by public records alone, as `tacit learn` does. None takes
        `Columns()` for tables in which some public column is not of numbers, or has gaps that learners cannot take;
        data frames of numbers are then used as they are.
    key
        32 bytes for the hash, fresh unless given.
    engine
        Where teachers are trained, as for `Teachers`.
    random_state
        The seed of the clusters. Privacy noise takes no seed.

    Attributes
    ----------
    guarantee_
        What is proven about everything that may be published.
    classes_
        The classes.
    columns_
        The rule that turns tables into numbers; None if records were numbers.
    labels_
        For each public record the number of its class in `classes_`, −1 if it was refused or not asked about. "moments"
        sets neither this nor the next three.
    answered_, refused_
        The places of the public records that were answered and refused.
    noisy_counts_
        The noisy counts, if they were released.
    noisy_sums_
        With "moments", the sums that were released: a row for each class.
    student_
        The fitted student.
    choice_
        Why the mechanism was chosen.
    error_, agreement_
        The estimate of the teachers' error, and of how far they agree, if one was paid for.
    public_
        Without `X_public`: the places in `X` of the records that became public, in the order of `labels_`. Private, as
        the order of `X` may tell labels; pickles and copies leave it out.
    teachers_
        The teachers, or the records that vote. Private; pickles and copies leave them out. `published()` returns what
        may be published.
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        n_teachers: int | str = "auto",
        mechanism: str | Mechanism = "auto",
        student: Any = None,
        features: Any = None,
        queries: int | str | None = None,
        teacher_accuracy: Any = None,
        refusals: int | None = None,
        error_share: float = 0.0,
        ledger: Ledger | None = None,
        classes: Any = None,
        columns: Columns | None = None,
        key: bytes | None = None,
        engine: str = "local",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.n_teachers = n_teachers
        self.mechanism = mechanism
        self.student = student
        self.features = features
        self.queries = queries
        self.teacher_accuracy = teacher_accuracy
        self.refusals = refusals
        self.error_share = error_share
        self.ledger = ledger
        self.classes = classes
        self.columns = columns
        self.key = key
        self.engine = engine
        self.random_state = random_state

    def fit(
        self,
        X: Any,  # noqa: N803 — scikit-learn's name
        y: Any,
        X_public: Any = None,  # noqa: N803
        *,
        ids: Iterable[object] | None = None,
        label_column: str | None = None,
        ids_column: str | None = None,
        proposer: Any = None,
        folder: Path | str | None = None,
        trusted: Sequence[str] = (),
        allow_overlap: bool = False,
        rehearse: Callable[[PrivateClassifier], object] = lambda _: None,
        advance: Callable[[str], None] = lambda _: None,
    ) -> PrivateClassifier:
        """Train teachers, spend the budget, ask about public records, and fit the student.

        Before anything is paid for, the student learns from made-up answers, among them a class that is answered once.

        Parameters
        ----------
        X, y
            The private records and their labels: an array, or a table (a dict of columns, or a data frame of pandas,
            Polars or Arrow) with text, categories, numbers and gaps.
        X_public
            The public records, of the same kind. If rows are equal to private ones beyond chance, they are refused.
            Without them, only labels are protected.
        ids
            Whose each record is. A "record" of the guarantee is then all records of one id.
        label_column, ids_column
            The names of the columns of `y` and `ids`. The guarantee and the ledger's entry repeat them where they
            matter: costs for different columns add up to no promise, and a ledger does not mix them.
        proposer
            A fitted classifier that was made without these records. "confirm" needs it, and "auto" then considers it.
            It proposes labels of public records, the surest first; later proposals come from students of what was
            confirmed. Of tables, it gets the rows as numbers, as `Columns().fit(X_public)` makes them.
        folder
            A folder that must be as private as the records. Teachers are stored there, and a later call for the same
            task goes on where another stopped. With a ledger it is then the same release: nothing is paid twice, and
            answers that were noted are read back. Without a ledger each call is a release of its own.
        trusted
            Types that stored teachers may hold, as for `Teachers`.
        allow_overlap
            Accept public records that are private ones. Such records are not protected.
        rehearse
            Called with a stand-in that was fitted to made-up answers, before anything is paid for, to try on it what
            will be done with the classifier.
        advance
            Called with a line about the progress.

        Returns
        -------
        This classifier, fitted.

        Raises
        ------
        InputError
            The message may depend on private records: do not publish it.
        """
        self._forget()
        labels_only = X_public is None
        # What a proposer names is as public as the proposer.
        classes = getattr(proposer, "classes_", None) if self.classes is None else self.classes
        shares = Shares(
            epsilon=self.epsilon,
            delta=self.delta,
            counting=self.n_teachers == "auto"
            and not labels_only
            and not isinstance(self.mechanism, VoteQuota)
            and not self._sums,
            finding=classes is None,
            mechanism=None if isinstance(self.mechanism, str) else self.mechanism,
            **{"least": LEAST_EPSILON} if self._sums else {},
        )
        check_options(self.get_params(deep=False), proposer=proposer, shares=shares, labels_only=labels_only)
        given = X, X_public = validate.unmasked("X", X), validate.unmasked("X_public", X_public)  # noqa: N806
        self.columns_ = rule_for(self.columns, X, X_public, takes_gaps=self.__sklearn_tags__().input_tags.allow_nan)
        X, X_public = self._numbers(X), None if labels_only else self._numbers(X_public)  # noqa: N806
        X, y = self._checked(X, column("y", y), ensure_min_samples=2)  # noqa: N806
        present, _ = distinct("y", y)  # before anything is paid: all labels can be kept, and published
        if classes is not None:
            self.classes_, _ = named(y, classes)
        whose, place = owners(X, ids), None if folder is None else Path(folder)
        compared = neighbours(
            labels_only=labels_only, ids=ids is not None, label_column=label_column, ids_column=ids_column
        )
        with private_files.enclosed(place):
            run = interrupted.run(None if place is None else private_files.closed(place), self.key)
            key, ledger = run.key, interrupted.anchored(self.ledger, place)
            private = np.ones(len(X), dtype=bool)
            if labels_only:
                arranged = order(X, key)  # before anything else sees them: the order they came in may tell labels
                X, y, whose = X[arranged], y[arranged], [whose[row] for row in arranged]  # noqa: N806
                private = parts(whose, key, b"tacit public", 2) == 0
                self.public_ = arranged[~private]
                public = X[~private]
            else:
                check_width(X, X_public)
                public = self._checked(X_public, reset=False)
                if not allow_overlap:
                    rule = self.columns_
                    ours, theirs = (X, public) if rule is None else map(rule.compared, given)
                    whole = () if rule is None else tuple(rule.encoders or ())
                    require_other_rows("X_public", theirs, ours, called="X", remedy=REMEDY, unlimited=whole)
            held_out = np.zeros(len(X), dtype=bool)
            if self.error_share:
                held_out = private & (parts(whose, key, b"tacit held out", _HELD_OUT) == 0)
            taught = private & ~held_out
            if not taught.any() or not len(public):
                raise InputError(
                    "the records",
                    f"n_samples = {len(X)}",
                    requirement="must be enough to learn from and to ask about some",
                    remedy="pass more of them, or public records as X_public",
                )
            costs = {cost.what: cost for cost in shares.costs(compared)}
            if ledger is not None:  # before anything is done for nothing
                interrupted.require(ledger, run.release, list(costs.values()))
            everyone = len(X) if ids is None else len(set(whose))
            self.features_ = None if self.features is None else clone(self.features).fit(public)
            seen = self._seen(public)
            places = cache(lambda number: medoids(seen, clusters=number, random_state=self._seed(key)))
            student = clone(self._student())
            release = Release(
                shares=shares,
                compared=compared,
                labels_only=labels_only,
                overlapping=allow_overlap,
                proposed=proposer is not None,
                named=classes is not None,
                transformed=self.features is not None,
                encoded=self.columns_ is not None and bool(self.columns_.encoders),
            )
            shown = typed(present) if classes is None else self.classes_
            voters = everyone
            if labels_only:  # what is left to vote is known
                voters = int(private.sum()) if ids is None else len({whose[row] for row in np.flatnonzero(private)})
            teachers = self._teachers(voters, len(public), shares, len(shown), proposer is not None)
            warn_of_transformer(X, None if labels_only else public)
            near = None
            if self._nearby:  # for constants that the caller chose nobody reads their number, so nothing may tell it
                told = labels_only or shares.counting
                near = _Near(seen=seen, places=places, voters=voters if told else None)
            may_sum = self._undemanding and proposer is None
            if may_sum or self._sums:  # whichever of both is done in the end
                rehearse(self._stand_in(release, shown, 0, public, student, None, None, advance))
            if not self._sums:
                rehearse(self._stand_in(release, shown, teachers, public, student, proposer, near, advance))
            epsilon, delta = shares.whole
            once = run.release if ledger is not None and place is not None else None
            repeated_fits.count(X, epsilon=epsilon, delta=delta, release=once, limited=ledger is not None)
            people = None if ids is None else whose
            draws = Draws(records=X, people=people, run=run, folder=place, ledger=ledger)
            if classes is None:
                self.classes_ = draws.classes(y, shares.search(labels_only=labels_only), costs[CLASSES])
            numbers = numbered(y, self.classes_)
            if shares.counting:
                voters = draws.count(costs[COUNT])
                near = None if near is None else dataclasses.replace(near, voters=voters)
            if self._sums or (
                may_sum and suits(seen, _sums_mechanism(release), voters=voters, classes=len(self.classes_))
            ):
                own = None if people is None else [whose[row] for row in np.flatnonzero(private)]
                self._release_sums(X[private], numbers[private], own, public, release, run, place, ledger)
                return self
            taught &= numbers != UNNAMED
            teachers = self._teachers(voters, len(public), shares, len(self.classes_), proposer is not None)
            first = None if proposer is None else Proposer(proposer, public, self.classes_, student)
            chosen, agreement_cost = None, 0.0
            if not self.error_share:
                chosen = self._expected_choice(release, teachers, len(public), student, first, near)
                agreement_cost = self._agreement_cost(chosen, shares, teachers)
            if agreement_cost:
                chosen = None
            if chosen is not None:
                _prove(chosen, advance)
            mark = self._mark(
                None if chosen is None else chosen.mechanism,
                public,
                release,
                queries=self._queries if chosen is None else chosen.queries,
                teachers=teachers,
            )
            if first is not None:
                mark["proposals"] = run_folder.digest(first.labels.tobytes())
            if place is not None:
                run_folder.claim(place, mark, resume=True, name="folder")
            asked = None if chosen is None else places(chosen.queries)
            own = [whose[row] for row in np.flatnonzero(taught)]
            council = self._council(chosen, teachers, seen, key, trusted)
            records = each_alone(self.features_, X[taught], like=seen)
            if isinstance(council, NearbyVoters):
                council.fit(
                    records,
                    numbers[taught],
                    people=None if ids is None else own,
                    key=key,
                    folder=None if place is None else place / VOTERS,
                )
            else:
                council.fit(
                    records,
                    numbers[taught],
                    ids=own,
                    engine=self.engine,
                    folder=None if place is None else place / "teachers",
                    advance=advance,
                )
            # From here on private votes are looked at: what that may cost is on the disk first.
            notes = self._spent(run.release, mark, costs[ANSWERS], ledger)
            self.teachers_ = council
            self.error_ = self.agreement_ = None
            if agreement_cost:
                self.agreement_ = self._agreement(
                    cast(Teachers, council), seen[places(min(_PROBES, len(public)))], notes, cost=agreement_cost
                )
                chosen = self._agreed_choice(shares, teachers, len(public), student, first, self.agreement_)
            elif chosen is None:  # which neighbours never leave open
                tested = parts(whose, key, b"tacit tester", teachers)[held_out]
                self.error_ = self._error(
                    each_alone(self.features_, X[held_out], like=seen),
                    numbers[held_out],
                    tested,
                    teachers,
                    notes,
                    council=cast(Teachers, council),
                    cost=self._error_cost(shares),
                )
                chosen = self._informed_choice(shares, teachers, len(public), student, self.error_)
            if asked is None:
                _prove(chosen, advance)
                notes.settle(_CHOSEN, _described(chosen))
                asked = places(chosen.queries)
            self.choice_ = chosen.reason
            found = answers(
                chosen.mechanism,
                council,
                seen,
                asked,
                proposer=first,
                notes=notes,
                engine=self.engine,
                advance=advance,
            )
            labels, counts = labels_and_counts(found, points=len(public))
            self.guarantee_ = release.guarantee_of(
                chosen.mechanism, council=_size(near, chosen, teachers), estimate=self._estimate, resumed=notes.resumed
            )
            self._answered(labels, counts, [point for point, _ in found])
            if not len(self.answered_):
                raise InputError(
                    "the number of answers",
                    0,
                    requirement="must be at least 1 for a student to learn from; the budget is spent",
                    remedy="use fewer queries, more teachers or a larger epsilon; plan it with expected votes",
                )
            learned = fitting.fitted(student, public, labels, counts if has_fit_parameter(student, "counts") else None)
            learned.predict(public[:1])  # some say only now that there were too few answers
            self.student_ = learned
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Predict a class for each row of `X`, by the student."""
        check_is_fitted(self, "student_")
        classes: NDArray[Any] = self.classes_[self.student_.predict(self._checked(self._numbers(X), reset=False))]
        return classes

    @available_if(lambda self: hasattr(getattr(self, "student_", self._student()), "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The student's probabilities, a column for each of `classes_`."""
        check_is_fitted(self, "student_")
        points = self._checked(self._numbers(X), reset=False)
        return fitting.spread_chances(self.student_, points, classes=len(self.classes_))

    def published(self) -> PublishedClassifier:
        """The part that may be published: the student, the classes and the guarantee. `skops.io.dump` stores it."""
        check_is_fitted(self, "student_")
        return PublishedClassifier(
            student=self.student_,
            classes=self.classes_,
            guarantee_json=self.guarantee_.to_json(),
            columns=None if self._rule is None else self._rule.published(),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "student_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        first = self._estimator() if self.features is None else self.features
        learners = [first, self._student()]
        tags.input_tags.allow_nan = all(get_tags(learner).input_tags.allow_nan for learner in learners)
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for private in ("teachers_", "public_"):
            state.pop(private, None)
        return state

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _seen(self, points: NDArray[np.float64]) -> NDArray[Any]:
        """Public points as teachers and voters see them."""
        return points if self.features_ is None else np.asarray(self.features_.transform(points))

    def _estimator(self) -> Any:
        return LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator

    def _student(self) -> Any:
        if self.student is not None:
            return self.student
        if self._sums:
            return MomentClassifier(features=self.features)
        return Propagated(self._estimator(), features=self.features) if self._nearby else self._estimator()

    @property
    def _sums(self) -> bool:
        """Whether sums are released, and nobody votes."""
        return isinstance(self.mechanism, str) and self.mechanism == MOMENTS

    @property
    def _undemanding(self) -> bool:
        """Whether all is left to "auto": teachers would be logistic regression, and nothing was said about them."""
        unset: dict[str, object] = {
            "n_teachers": "auto",
            "student": None,
            "queries": None,
            "refusals": None,
            "teacher_accuracy": None,
        }
        unset |= {"engine": "local", "error_share": 0.0, "mechanism": "auto"}
        if any(
            type(getattr(self, name)) is not type(usual) or getattr(self, name) != usual
            for name, usual in unset.items()
        ):
            return False
        return self.estimator is None or _plain(self.estimator)

    @property
    def _nearby(self) -> bool:
        """Whether records vote, and there are no teachers."""
        return isinstance(self.mechanism, VoteQuota) or (
            isinstance(self.mechanism, str) and self.mechanism == NEIGHBOURS
        )

    def _council(
        self, chosen: Choice | None, teachers: int, seen: NDArray[Any], key: bytes, trusted: Sequence[str]
    ) -> Teachers | NearbyVoters:
        """Who votes, untrained."""
        classes = len(self.classes_)
        if chosen is not None and isinstance(chosen.mechanism, VoteQuota):
            return NearbyVoters(seen, rank=chosen.mechanism.rank, quota=chosen.mechanism.quota, classes=classes)
        return Teachers(self._estimator(), teachers, key, classes=range(classes), trusted=trusted)

    def _teachers(self, voters: int, points: int, shares: Shares, classes: int, proposes: bool) -> int:
        """The number of teachers for so many records or people; 0 if these vote themselves."""
        if self._nearby or self._sums:
            return 0
        if self.n_teachers != "auto":
            remedy = "use 'auto' to have it chosen"
            return validate.whole("n_teachers", self.n_teachers, at_least=1, remedy=remedy)
        made = None if isinstance(self.mechanism, str) else self.mechanism
        epsilon, delta = shares.left if made is None else (made.epsilon, made.delta)
        found = prospects(
            "auto" if made is not None or KINDS.get(str(self.mechanism)) is None else str(self.mechanism),
            epsilon=epsilon,
            delta=delta,
            records=voters,
            points=points,
            queries=self._wanted(points),
            lead=margins(self.teacher_accuracy),
            refusals=None if self.refusals is None else int(self.refusals),
            classes=classes,
            proposer_error=_EXPECTED_ERROR if proposes else None,
        )
        return number_of_teachers(found)

    def _wanted(self, points: int) -> int | None:
        """The number of public records to ask about; None leaves it to the choice."""
        if self.queries is None:
            return None
        return points if self.queries == "all" else min(points, int(self.queries))

    def _choice(
        self,
        points: int,
        teachers: int,
        student: Any,
        lead: Margins,
        *,
        budget: tuple[float, float],
        refusals: int | None = None,
        proposer_error: float | None = None,
        estimate: AgreementEstimate | None = None,
    ) -> Choice:
        queries = self._wanted(points)
        if not isinstance(self.mechanism, str):
            asked = points if queries is None else queries
            return callers_choice(self.mechanism, queries=asked, classes=len(self.classes_))
        return choice(
            self.mechanism,
            epsilon=budget[0],
            delta=budget[1],
            teachers=teachers,
            points=points,
            queries=queries,
            lead=lead,
            refusals=int(self.refusals) if refusals is None and self.refusals is not None else refusals,
            classes=len(self.classes_),
            counts=has_fit_parameter(student, "counts"),
            proposer_error=proposer_error,
            estimate=estimate,
        )

    def _expected_choice(
        self,
        release: Release,
        teachers: int,
        points: int,
        student: Any,
        proposer: Proposer | None,
        near: _Near | None,
    ) -> Choice:
        """The choice by expected votes, or by public records near one another."""
        shares = release.shares
        if near is not None and near.voters is not None and isinstance(self.mechanism, str):
            epsilon, delta = shares.left
            return nearby_choice(
                near.seen,
                near.places,
                voters=near.voters,
                epsilon=epsilon,
                delta=delta,
                queries=self._wanted(points),
                changed=2 if release.labels_only else 1,
            )
        wrong = None if proposer is None else proposer.error
        lead = possible_margins(self.teacher_accuracy)
        return self._choice(points, teachers, student, lead, budget=shares.left, proposer_error=wrong)

    def _informed_choice(
        self, shares: Shares, teachers: int, points: int, student: Any, error: ErrorEstimate
    ) -> Choice:
        """T from the estimated error: by Theorem 3.2 for the printed constants, else by votes with that error."""
        epsilon, delta = shares.left
        budget = down(epsilon - error.epsilon), delta
        kind = KINDS[str(self.mechanism)]  # an estimate was paid for by name
        queries = self._wanted(points) or points
        refusals = kind.printed_refusals(error.value, queries=queries, failure_probability=_FAILURE)
        lead = margins(min(1.0, max(0.51, 1 - error.value)))
        found = self._choice(points, teachers, student, lead, budget=budget, refusals=refusals)
        reason = f"{found.reason}, but for a private estimate of the teachers' error, {error.value:.3g}"
        return dataclasses.replace(found, reason=reason)

    def _agreement_cost(self, unpaid: Choice, shares: Shares, teachers: int) -> float:
        """What an estimate of the agreement costs; 0 where somebody has stated it, or where it would not help."""
        if self.teacher_accuracy is not None or not isinstance(self.mechanism, str) or self._nearby:
            return 0.0
        return estimate_cost(unpaid, epsilon=shares.left[0], teachers=teachers)

    def _agreed_choice(
        self,
        shares: Shares,
        teachers: int,
        points: int,
        student: Any,
        proposer: Proposer | None,
        found: AgreementEstimate,
    ) -> Choice:
        """The choice by the estimated agreement."""
        epsilon, delta = shares.left
        return self._choice(
            points,
            teachers,
            student,
            possible_margins(None),
            budget=(down(epsilon - found.epsilon), delta),
            proposer_error=None if proposer is None else proposer.error,
            estimate=found,
        )

    def _agreement(
        self, council: Teachers, probes: NDArray[Any], notes: interrupted.Notes, *, cost: float
    ) -> AgreementEstimate:
        """How far the teachers agree on some public records, drawn once and noted."""
        noted = notes.value("agreement")
        if noted is not None:
            return AgreementEstimate(**noted)
        votes = council.counts(probes, engine=self.engine)
        found = private_agreement(votes, teachers=council.n_teachers, epsilon=cost)
        notes.add({"agreement": dataclasses.asdict(found)})
        return found

    @property
    def _estimate(self) -> ErrorEstimate | AgreementEstimate | None:
        """The estimate that was paid for."""
        return self.error_ if self.agreement_ is None else self.agreement_

    def _error_cost(self, shares: Shares) -> float:
        return down(shares.epsilon * float(self.error_share))

    def _error(
        self,
        records: NDArray[np.float64],
        numbers: NDArray[np.int64],
        tester: NDArray[np.int64],
        teachers: int,
        notes: interrupted.Notes,
        *,
        council: Teachers,
        cost: float,
    ) -> ErrorEstimate:
        """Every held-out record tests one teacher."""
        noted = notes.value("error")
        if noted is not None:
            return ErrorEstimate(**noted)
        wrong = np.zeros(len(records), dtype=np.int64)
        if len(records):
            votes = council.votes(records, engine=self.engine)
            wrong = (votes[np.arange(len(records)), tester] != numbers).astype(np.int64)
        mistakes = np.bincount(tester, weights=wrong, minlength=teachers).astype(np.int64)
        tests = np.bincount(tester, minlength=teachers).astype(np.int64)
        found = private_error(mistakes, tests, epsilon=cost)
        notes.add({"error": dataclasses.asdict(found)})
        return found

    @property
    def _queries(self) -> str:
        return repr(self.queries if self.queries in (None, "all") else int(str(self.queries)))

    def _mark(
        self,
        mechanism: Mechanism | NoisySums | None,
        public: NDArray[np.float64],
        release: Release,
        *,
        queries: int | str,
        teachers: int,
    ) -> dict[str, object]:
        """The task of a folder: all that decides what is drawn, except the records and the teachers."""
        epsilon, delta = release.shares.whole
        return {
            "task": "private classifier",
            "epsilon": epsilon,
            "delta": delta,
            "mechanism": str(self.mechanism) if mechanism is None else repr(mechanism),
            "constants": "" if mechanism is None else repr(mechanism.guarantee.detail),
            "queries": queries,
            "error_share": float(self.error_share),
            "n_teachers": teachers,
            "classes": self.classes_.tolist(),
            "neighbours": release.compared,
            "features": repr(self.features),
            "ledger": None if self.ledger is None else self.ledger.origin,
            "public": run_folder.digest(np.ascontiguousarray(public).tobytes()),
        }

    def _seed(self, key: bytes) -> Any:
        """The seed of the clusters: as given, else from the key, so that a run that goes on uses the same."""
        if self.random_state is not None:
            return self.random_state
        return int.from_bytes(hashlib.blake2b(key=key, digest_size=4, person=b"tacit medoids").digest())

    def _stand_in(
        self,
        release: Release,
        classes: NDArray[Any],
        teachers: int,
        public: NDArray[np.float64],
        student: Any,
        proposer: Any,
        near: _Near | None,
        advance: Callable[[str], None],
    ) -> PrivateClassifier:
        """This classifier fitted to made-up answers, so that what would fail later fails before anything is paid."""
        made = type(self)(**self.get_params(deep=False))
        made.classes_, made.error_, made.agreement_ = classes, None, None
        for name in ("n_features_in_", "feature_names_in_", "public_", "columns_"):
            if hasattr(self, name):
                setattr(made, name, getattr(self, name))
        if not teachers and near is None:
            mechanism = _sums_mechanism(release)
            width = unit_rows(self._seen(public[:1])).shape[1]
            made.features_ = self.features_
            made.guarantee_ = release.guarantee_of(mechanism, council={}, estimate=None, resumed=True)
            made._learn_sums(np.zeros((len(classes), width), dtype=np.int64), public)
            return made
        if self.error_share:
            cost = self._error_cost(release.shares)
            made.error_ = ErrorEstimate(value=_EXPECTED_ERROR, epsilon=cost, scale=1.0, teachers=teachers)
            chosen = made._informed_choice(release.shares, teachers, len(public), student, made.error_)
        else:
            first = None if proposer is None else Proposer(proposer, public, classes, student)
            chosen = made._expected_choice(release, teachers, len(public), student, first, near)
            cost = made._agreement_cost(chosen, release.shares, teachers)
            if cost:
                scale = laplace_scale(cost, sensitivity=AgreementEstimate.sensitivity)
                made.agreement_ = AgreementEstimate(value=teachers // 4, epsilon=cost, scale=scale, teachers=teachers)
                chosen = made._agreed_choice(release.shares, teachers, len(public), student, first, made.agreement_)
        _prove(chosen, advance)
        made.choice_ = chosen.reason
        council = _size(near, chosen, teachers)
        made.guarantee_ = release.guarantee_of(chosen.mechanism, council=council, estimate=made._estimate, resumed=True)
        counting = bool(getattr(chosen.mechanism, "counts", False))
        labels, counts = made_up_answers(len(public), asked=chosen.queries, classes=len(classes), counts=counting)
        made._answered(labels, counts, range(chosen.queries))
        counting &= has_fit_parameter(student, "counts")  # others get the class of the largest
        made.student_ = fit_student(student, public, labels, counts if counting else None)
        few = public[:_FEW]
        fit_student(
            student, few, *made_up_answers(len(few), asked=len(few), classes=len(classes), counts=counting, rare=True)
        )
        return made

    def _release_sums(
        self,
        records: NDArray[np.float64],
        numbers: NDArray[np.int64],
        people: list[bytes] | None,
        public: NDArray[np.float64],
        release: Release,
        run: interrupted.Run,
        folder: Path | None,
        ledger: Ledger | None,
    ) -> None:
        """Pay for the sums, draw their noise once, note them, and only then learn from them.

        Sums that were drawn and not noted were seen by nobody; those that were noted are read back.
        """
        mechanism = _sums_mechanism(release)
        mark = self._mark(mechanism, public, release, queries=0, teachers=0)
        if folder is not None:
            run_folder.claim(folder, mark, resume=True, name="folder")
            remember(folder / SUMMED, records, numbers, people, run.key)
        *_, cost = release.shares.costs(release.compared)
        notes = self._spent(run.release, mark, cost, ledger)
        noted = notes.value(_NOTED)
        if noted is None:
            if notes.earlier:
                notes.add({"resumed": 0})
            rows = unit_rows(each_alone(self.features_, records, like=self._seen(public[:1])))
            sums = sums_by_class(rows, numbers, people, classes=len(self.classes_))
            noted = mechanism.release(sums).tolist()
            notes.add({_NOTED: noted})
        self.guarantee_ = release.guarantee_of(mechanism, council={}, estimate=None, resumed=notes.resumed)
        self._learn_sums(np.array(noted, dtype=np.int64), public)

    def _learn_sums(self, noisy: NDArray[np.int64], public: NDArray[np.float64]) -> None:
        """Set the attributes that follow from sums."""
        self.noisy_sums_, self.choice_ = noisy, NoisySums.reason
        self.error_ = self.agreement_ = None
        self.student_ = MomentClassifier.of_sums(
            noisy,
            public,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            features=self.features,
            fitted=self.features_,
        )

    def _answered(self, labels: NDArray[np.int64], counts: NDArray[np.int64] | None, asked: Sequence[int]) -> None:
        """Set the attributes about what was released."""
        self.labels_ = labels
        self.answered_ = np.flatnonzero(labels != fitting.UNLABELLED)
        self.refused_ = np.setdiff1d(asked, self.answered_).astype(np.int64)
        self.noisy_counts_ = counts

    def _spent(
        self, release: str, mark: dict[str, object], cost: interrupted.Cost, ledger: Ledger | None
    ) -> interrupted.Notes:
        """Pay for the answers in the ledger, once for each release, and return the notes of the entry."""
        if ledger is None:
            return interrupted.Notes()
        task = run_folder.digest(json.dumps(mark, sort_keys=True).encode())
        detail = {
            "mechanism": self.mechanism if isinstance(self.mechanism, str) else type(self.mechanism).__name__,
            "error_share": float(self.error_share),
        }
        return interrupted.paid(ledger, release, cost, task=task, detail=detail)

    def _numbers(self, records: Any) -> Any:
        """Tables as numbers; what are numbers already stays as it is."""
        return records if self._rule is None else self._rule.transform(records)

    @property
    def _rule(self) -> Columns | None:
        return getattr(self, "columns_", None)  # which classifiers that an earlier version pickled lack

    def _checked(self, *points_and_labels: Any, **options: Any) -> Any:
        finite = "allow-nan" if self.__sklearn_tags__().input_tags.allow_nan else True
        validate.unmasked("X", points_and_labels[0])
        return validate_data(self, *points_and_labels, dtype=np.float64, ensure_all_finite=finite, **options)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class _Near:
    """What a choice among neighbours needs: public features, the places of so many queries, and how many vote.

    None for a number that is private and was not read with noise.
    """

    seen: NDArray[Any]
    places: Callable[[int], NDArray[np.int64]]
    voters: int | None


def _plain(estimator: Any) -> bool:
    """Whether it is logistic regression as it comes, however long it may iterate."""
    if type(estimator) is not LogisticRegression:
        return False
    usual = LogisticRegression(max_iter=estimator.max_iter)
    return bool(estimator.get_params() == usual.get_params())


def _sums_mechanism(release: Release) -> NoisySums:
    epsilon, delta = release.shares.left
    return NoisySums(epsilon=epsilon, delta=delta, changed=2 if release.labels_only else 1)


def _size(near: _Near | None, chosen: Choice, teachers: int) -> dict[str, float]:
    """How many may vote, for the guarantee's detail: teachers, or about so many on each query, if that may be told."""
    if near is None or not isinstance(chosen.mechanism, VoteQuota):
        return {"teachers": teachers}
    if near.voters is None:
        return {}
    return {"expected_votes": expected_votes(chosen.mechanism, voters=near.voters, points=len(near.seen))}


def _described(chosen: Choice) -> dict[str, object]:
    """What a run must go on with that was chosen after it had paid."""
    mechanism = chosen.mechanism
    return {"mechanism": repr(mechanism), "constants": repr(mechanism.guarantee.detail), "queries": chosen.queries}


def _prove(chosen: Choice, advance: Callable[[str], None]) -> Guarantee:
    """What the mechanism proves; raises where no theorem covers it."""
    if isinstance(chosen.mechanism, Tabled):
        return chosen.mechanism.prove(advance)  # which may take a minute
    return chosen.mechanism.guarantee
