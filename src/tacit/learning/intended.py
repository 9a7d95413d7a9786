"""What a fit with default options will do with a budget: how many teachers it trains, and what it expects of them."""

from __future__ import annotations

from dataclasses import dataclass

from .choice import Choice, Prospect, choice, estimate_cost, number_of_teachers, prospects
from .mechanisms.cases import ACCURACIES, margins, possible_margins
from .shares import Shares


@dataclass(frozen=True, kw_only=True)
class Intention:
    """What `PrivateClassifier` does, and `tacit learn`, for numbers of private and public records and a budget.

    Attributes
    ----------
    teachers, records_per_teacher
        How many teachers there are, and about how many records each has.
    estimate
        The ε of an estimate of how far teachers agree, which decides on the mechanism; 0 if none is made.
    choice
        The choice if no estimate is made.
    accuracies
        The shares of right teachers, with many records each, that are thought possible.
    prospects
        What each number of teachers is good for, with the best mechanism in each of these cases.
    """

    teachers: int
    records_per_teacher: int
    estimate: float
    choice: Choice
    accuracies: tuple[float, ...]
    prospects: tuple[Prospect, ...]

    @property
    def right(self) -> tuple[float, ...]:
        """In each case the expected number of right answers of the number of teachers nearest to this."""
        return min(self.prospects, key=lambda prospect: abs(prospect.teachers - self.teachers)).right


def intended(
    records: int,
    points: int,
    *,
    epsilon: float,
    delta: float,
    classes: int = 2,
    teacher_accuracy: float | None = None,
    teachers: int | None = None,
    named: bool = False,
) -> Intention:
    """What a fit does that counts records with noise, and, unless classes are `named`, finds them with noise.

    Parameters
    ----------
    records, points
        The number of private records, and of public ones.
    epsilon, delta
        The whole budget.
    classes
        The number of classes.
    teacher_accuracy, teachers
        As of `PrivateClassifier`, if stated there.
    named
        Whether the classes are named.
    """
    shares = Shares(epsilon=epsilon, delta=delta, counting=teachers is None, finding=not named)
    budget, spare = shares.left
    found = prospects(
        "auto",
        epsilon=budget,
        delta=spare,
        records=records,
        points=points,
        queries=None,
        lead=margins(teacher_accuracy),
        classes=classes,
    )
    number = number_of_teachers(found) if teachers is None else teachers
    first = choice(
        "auto",
        epsilon=budget,
        delta=spare,
        teachers=number,
        points=points,
        queries=None,
        lead=possible_margins(teacher_accuracy),
        classes=classes,
    )
    return Intention(
        teachers=number,
        records_per_teacher=records // number,
        estimate=0.0 if teacher_accuracy is not None else estimate_cost(first, epsilon=budget, teachers=number),
        choice=first,
        accuracies=ACCURACIES if teacher_accuracy is None else (teacher_accuracy,),
        prospects=found,
    )
