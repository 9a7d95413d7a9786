"""A private classifier: teachers vote on public records, a mechanism answers, and a student learns from the answers.

It is the paper's Algorithm 3, with any of the mechanisms, as a scikit-learn classifier. `fit` is a table of contents:
its parts are `fit_options`, `fit_records`, `fit_task`, `fit_choice`, and `fit_votes` or `fit_sums`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core import validate
from ..core.deprecation import renamed
from ..core.errors import InputError
from ..ledger import Ledger
from ..runtime import private_files
from . import fit_sums, fit_votes, interrupted, repeated_fits
from .assumptions import neighbours
from .columns import Columns
from .drawn import Draws
from .fit_choice import Chooser
from .fit_options import Options, check_options
from .fit_records import Divided, divided
from .fit_task import FitTask
from .frames import rule_for
from .held_out import AgreementEstimate, ErrorEstimate
from .labels import column, distinct, named, numbered, typed
from .mechanisms import Mechanism
from .mechanisms.registry import asks_nobody, asks_records
from .moments import MomentClassifier, NoisySums
from .overlap import REMEDY, require_other_rows
from .owners import owners
from .published import PublishedClassifier
from .queries import medoids
from .release import Release
from .shares import CLASSES, COUNT
from .students import Propagated, fitting
from .students.choosing import MADE_UP, fit, fitted_student
from .transformed import check_width, warn_of_transformer


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
        "svt", "svt-adaptive", "svt-faithful", "gnmax", "gnmax-winners", "confident-gnmax", "stable", "gate", "confirm",
        an object of `mechanisms`, or "auto", which chooses by expected votes and says why in `choice_`.
        "svt-adaptive" chooses its noise anew for every query, by what was answered before. "gnmax-winners" is GNMax
        that pays for winners by a game: a little less noise, no counts, at most 2000 queries, and a certificate that
        the checker cannot follow, so "auto" takes it only where others are expected to be worth less than nine tenths.
        "neighbours" trains no teachers: private records vote on public ones near them, each a few times,
        so that the number of queries costs nothing. It is not model-agnostic: it is a nearest-neighbour vote in
        `features`. "auto" does not consider it, as public features say how many neighbours vote, but not whether
        neighbours share a label. "moments" asks nobody: sums of `features` by class are released once with noise, and
        the student is the linear classifier that follows from them (`MomentClassifier`). It is not model-agnostic
        either; "auto" takes it for two classes if all about teachers is left to it, and public features and the number
        of records suit (`moments.suits`).
    student
        Any classifier. Semi-supervised ones get −1 for points without an answer, others only points with one. One whose
        `fit` takes `counts` (`students.Propagated`) gets noisy counts from "neighbours" at the same cost, and from
        GNMax with about an eighth more noise than labels need.
        None takes the estimator, or for "neighbours" `students.Propagated` with the estimator in the end, unless
        another student agrees better with released answers left out, which costs no privacy: `student_choice_` says
        which. To have the estimator in any case, pass it here, too.
    features
        A transformer, fitted to the public records alone, in whose space teachers learn, neighbours are near and
        queries are chosen. The student gets the points as they are.
    queries
        "all" public records, or a number of them, medoids of clusters; None leaves it to the choice.
    teacher_accuracy
        The share of teachers expected to be right, or counts of public or made-up votes; constants are chosen by it,
        and the number of teachers, for which it is that of teachers with many records. With None, any is
        thought possible; where it helps, at most a tenth of ε then pays for an estimate of how far they agree.
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
    student_choice_
        Which student was chosen, and by which figures; None if it was given, or if there were no answers.
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
            That a fit fails, and the message, may depend on private records: publish neither.
        """
        self._forget()
        options, labels_only = Options.of(self), X_public is None
        # What a proposer names is as public as the proposer.
        classes = getattr(proposer, "classes_", None) if self.classes is None else self.classes
        shares = options.shares(labels_only=labels_only, finding=classes is None)
        check_options(options, proposer=proposer, shares=shares, labels_only=labels_only)
        given = X, X_public = validate.unmasked("X", X), validate.unmasked("X_public", X_public)  # noqa: N806
        self.columns_ = rule_for(self.columns, X, X_public, takes_gaps=self.__sklearn_tags__().input_tags.allow_nan)
        X, X_public = self._numbers(X), None if labels_only else self._numbers(X_public)  # noqa: N806
        X, y = self._checked(X, column("y", y), ensure_min_samples=2)  # noqa: N806
        present, _ = distinct("y", y)  # before anything is paid: all labels can be kept, and published
        if classes is not None:
            self.classes_, _ = named(y, classes)
        whose, place, by_id = owners(X, ids), None if folder is None else Path(folder), ids is not None
        compared = neighbours(labels_only=labels_only, ids=by_id, label_column=label_column, ids_column=ids_column)
        with private_files.enclosed(place):
            run = interrupted.run(None if place is None else private_files.closed(place), self.key)
            ledger = interrupted.anchored(self.ledger, place)
            testing = bool(self.error_share)
            records = divided(X, y, whose, by_id=by_id, key=run.key, publishing=labels_only, testing=testing)
            public = self._public(records, X_public, given, allow_overlap=allow_overlap)
            costs = {cost.what: cost for cost in shares.costs(compared)}
            if ledger is not None:  # before anything is done for nothing
                interrupted.require(ledger, run.release, list(costs.values()))
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
            self.features_ = None if self.features is None else clone(self.features).fit(public)
            seen = public if self.features_ is None else np.asarray(self.features_.transform(public))
            task = FitTask(
                options=options,
                release=release,
                run=run,
                folder=place,
                ledger=ledger,
                classes=shown,
                public=public,
                features=self.features_,
                seen=seen,
                places=cache(lambda number: medoids(seen, clusters=number, random_state=options.seed(run.key))),
                estimator=self._estimator(),
                student=clone(self._student()),
                proposer=proposer,
            )
            voters = records.voters
            chooser = Chooser.of(task, voters=voters)
            warn_of_transformer(records.records, None if labels_only else public)
            self._rehearse(task, chooser, rehearse, advance)
            epsilon, delta = shares.whole
            once = run.release if ledger is not None and place is not None else None
            repeated_fits.count(records.records, epsilon=epsilon, delta=delta, release=once, limited=ledger is not None)
            people = records.owners if by_id else None
            draws = Draws(records=records.records, people=people, run=run, folder=place, ledger=ledger)
            if classes is None:
                self.classes_ = draws.classes(records.labels, release.search, costs[CLASSES])
                task = dataclasses.replace(task, classes=self.classes_)
            numbers = numbered(records.labels, self.classes_)
            if shares.counting:
                voters = draws.count(costs[COUNT])
            if fit_sums.takes_sums(task, voters=voters):
                self._keep_sums(fit_sums.summed(task, records, numbers))
                return self
            chooser = Chooser.of(task, voters=voters)
            begun = fit_votes.begun(task, chooser, records, numbers, trusted=trusted, advance=advance)
            self.teachers_ = begun.council  # also where asking them fails, so that it can be told what was spent
            found = fit_votes.answered(task, chooser, begun, records, numbers, advance=advance)
            self._keep_answers(found)
            self._learn(task, found)
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
        learners = [first, getattr(self, "student_", self._student())]
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

    def _estimator(self) -> Any:
        return LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator

    def _student(self) -> Any:
        if self.student is not None:
            return self.student
        if asks_nobody(self.mechanism):
            return MomentClassifier(features=self.features)
        if asks_records(self.mechanism):
            return Propagated(self._estimator(), features=self.features)
        return self._estimator()

    def _public(
        self,
        records: Divided,
        table: Any,
        given: tuple[Any, Any],
        *,
        allow_overlap: bool,
    ) -> NDArray[np.float64]:
        """The public records: those that lost their labels, unless there are others, which must not be private ones."""
        if table is None:
            self.public_ = records.places[~records.private]
            public = records.records[~records.private]
        else:
            check_width(records.records, table)
            public = self._checked(table, reset=False)
            if not allow_overlap:
                rule = self.columns_
                ours, theirs = (records.records, public) if rule is None else map(rule.compared, given)
                whole = () if rule is None else tuple(rule.encoders or ())
                require_other_rows("X_public", theirs, ours, called="X", remedy=REMEDY, unlimited=whole)
        if not records.taught.any() or not len(public):
            raise InputError(
                "the records",
                f"n_samples = {len(records.records)}",
                requirement="must be enough to learn from and to ask about some",
                remedy="pass more of them, or public records as X_public",
            )
        return public

    def _rehearse(
        self,
        task: FitTask,
        chooser: Chooser,
        rehearse: Callable[[PrivateClassifier], object],
        advance: Callable[[str], None],
    ) -> None:
        """Fit stand-ins to made-up answers, and sums, so that what would fail later fails before anything is paid."""
        if fit_sums.may_sum(task):  # whichever of both is done in the end
            made = self._stand_in(task)
            made._keep_sums(fit_sums.rehearsed(task))
            rehearse(made)
        if not asks_nobody(self.mechanism):
            made = self._stand_in(task)
            answers, student = fit_votes.rehearsed(task, chooser, advance)
            made._keep_answers(answers)
            made.student_, made.student_choice_ = student, MADE_UP if self.student is None else None
            rehearse(made)

    def _stand_in(self, task: FitTask) -> PrivateClassifier:
        """A copy of this classifier that knows what this one does about its input."""
        made = type(self)(**self.get_params(deep=False))
        made.classes_ = task.classes
        for name in ("n_features_in_", "feature_names_in_", "public_", "columns_", "features_"):
            if hasattr(self, name):
                setattr(made, name, getattr(self, name))
        return made

    def _learn(self, task: FitTask, found: fit_votes.Answered) -> None:
        """Choose the student, unless it was given, and fit it to the answers."""
        if not len(self.answered_):
            raise InputError(
                "the number of answers",
                0,
                requirement="must be at least 1 for a student to learn from; the budget is spent",
                remedy="use fewer queries, more teachers or a larger epsilon; ask tacit.plan first",
            )
        released = task.public, found.labels, found.counts
        if self.student is None:
            student, chosen = fitted_student(task.student, *released, features=self.features)
        else:
            student, chosen = fit(task.student, *released), None
        student.predict(task.public[:1])  # some say only now that there were too few answers
        self.student_, self.student_choice_ = student, chosen

    def _keep_answers(self, found: fit_votes.Answered) -> None:
        """Set the attributes about what was released."""
        self.guarantee_, self.choice_ = found.guarantee, found.choice.reason
        self.error_ = found.estimate if isinstance(found.estimate, ErrorEstimate) else None
        self.agreement_ = found.estimate if isinstance(found.estimate, AgreementEstimate) else None
        self.labels_, self.noisy_counts_ = found.labels, found.counts
        self.answered_ = np.flatnonzero(found.labels != fitting.UNLABELLED)
        self.refused_ = np.setdiff1d(found.asked, self.answered_).astype(np.int64)

    def _keep_sums(self, found: fit_sums.Summed) -> None:
        """Set the attributes that follow from sums."""
        self.guarantee_, self.noisy_sums_, self.choice_ = found.guarantee, found.noisy, NoisySums.reason
        self.error_ = self.agreement_ = None
        self.student_, self.student_choice_ = found.student, None

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
