"""Counting votes, the winner, and the distance to the next winner."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import InputError
from tacit.learning import ABSTAIN, vote_counts, votes_to_flip, winners

histograms = st.lists(st.integers(0, 30), min_size=1, max_size=6)


def neighbours(row):
    """Every histogram after at most one teacher changed its vote, abstentions included."""
    yield list(row)
    for giver in [None, *range(len(row))]:
        for taker in [None, *range(len(row))]:
            moved = list(row)
            if giver is not None:
                moved[giver] -= 1
            if taker is not None:
                moved[taker] += 1
            if min(moved) >= 0:
                yield moved


@given(histograms)
def test_one_vote_moves_the_distance_by_one_and_the_winner_only_at_zero(row):
    distance, winner = int(votes_to_flip([row])[0]), int(winners([row])[0])
    for other in neighbours(row):
        theirs = int(votes_to_flip([other])[0])
        assert abs(distance - theirs) <= 1
        if int(winners([other])[0]) != winner:
            assert distance == theirs == 0


@given(histograms)
def test_so_many_votes_may_change_and_the_winner_stays(row):
    """By definition: from d on, one more vote can change the winner, up to the tie-break; below, none can."""
    distance, winner = int(votes_to_flip([row])[0]), int(winners([row])[0])
    worst = list(row) if len(row) > 1 else [*row, 0]
    second = max((count, -index) for index, count in enumerate(worst) if index != winner)
    for _ in range(min(distance, worst[winner])):
        worst[winner] -= 1
        worst[-second[1]] += 1
    assert int(winners([worst])[0]) == winner


def test_the_printed_distance_moves_by_two():
    before, after = np.array([10, 4]), np.array([9, 5])
    assert (before[0] - before[1] - 1) - (after[0] - after[1] - 1) == 2
    assert votes_to_flip([before])[0] - votes_to_flip([after])[0] == 1


def test_counts_of_votes():
    votes = np.array([[0, 2, 2, ABSTAIN], [1, 1, 1, 1], [ABSTAIN] * 4])
    assert vote_counts(votes, classes=4).tolist() == [[1, 0, 2, 0], [0, 4, 0, 0], [0, 0, 0, 0]]
    assert vote_counts(votes, classes=4).dtype == np.int64


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 6), st.integers(0, 99))
def test_counts_are_those_of_the_obvious_loop(classes, queries, teachers, seed):
    votes = np.random.default_rng(seed).integers(-1, classes, size=(queries, teachers))
    expected = [[sum(vote == label for vote in row) for label in range(classes)] for row in votes.tolist()]
    assert vote_counts(votes, classes=classes).tolist() == expected


def test_of_equals_the_first_wins():
    assert winners([[3, 3, 1], [0, 0, 0], [1, 2, 2]]).tolist() == [0, 0, 1]
    assert votes_to_flip([[3, 3, 1], [0, 0, 0], [7, 0, 0]]).tolist() == [0, 0, 3]
    assert votes_to_flip([[5]]).tolist() == [2]


@pytest.mark.parametrize("bad", [[[0, 3]], [[0, -2]], [[0.5, 1.0]], [0, 1], [["a"]], [[True, False]], [[0], [1, 2]]])
def test_votes_that_are_none_are_refused(bad):
    with pytest.raises(InputError, match="must"):
        vote_counts(bad, classes=3)
