"""Counting: batches and merges count what the whole table counts, and what cannot be counted is refused in words."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import InputError
from tacit.audit import Tally, plug_in

RNG = np.random.default_rng(0)
SECRET = RNG.integers(0, 2, 200)
NUMBERS = RNG.normal(size=200)
OUTPUTS = {
    "whole": RNG.integers(-5, 5, 200),
    "far apart": RNG.integers(-5, 5, 200) * 10**12,
    "boolean": RNG.integers(0, 2, 200) > 0,
    "text": RNG.choice(["yes", "no", "perhaps"], 200),
    "float": np.round(NUMBERS, 1),
    "columns": {"class": RNG.choice(["a", "b"], 200), "rounded": np.round(NUMBERS), "flag": NUMBERS > 0},
    "array": RNG.integers(0, 3, (200, 2)),
}


def rows(output, chosen):
    return {k: v[chosen] for k, v in output.items()} if isinstance(output, dict) else output[chosen]


def table(tally):
    """The counts as something that can be compared, whatever the order of symbols."""
    return sorted(zip(*(side.tolist() for side in tally.counts()), strict=True))


@pytest.mark.parametrize("name", OUTPUTS)
@given(cut=st.integers(0, 200))
def test_batches_and_merges_count_the_whole_table(name, cut):
    output = OUTPUTS[name]
    whole = Tally().add(SECRET, output)
    first, second = slice(0, cut), slice(cut, 200)
    batches = Tally().add(SECRET[first], rows(output, first)).add(SECRET[second], rows(output, second))
    merged = Tally().add(SECRET[second], rows(output, second))
    merged.merge(Tally().add(SECRET[first], rows(output, first)))
    for other in (batches, merged):
        assert table(other) == table(whole)
        assert (
            (other.positives, other.negatives)
            == (whole.positives, whole.negatives)
            == (SECRET.sum(), 200 - SECRET.sum())
        )
        assert other.symbols == whole.symbols


@pytest.mark.parametrize("kind", [{"noise": 0.3}, {"width": 0.5}])
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_numbers_are_counted_the_same_in_batches(kind, columns):
    output = RNG.normal(size=(200, columns))
    whole = Tally(**kind).add(SECRET, output)
    parts = Tally(**kind)
    for cut in range(0, 200, 37):
        parts.merge(Tally(**kind).add(SECRET[cut : cut + 37], output[cut : cut + 37]))
    assert table(parts) == table(whole)


def test_memory_does_not_grow_with_rows():
    tally = Tally(noise=0.1)
    for _ in range(5):
        tally.add(np.tile(SECRET, 50), np.tile(NUMBERS, 50))
    assert tally.positives == 250 * SECRET.sum()
    assert tally.symbols <= 400


def test_joint_columns_are_one_symbol():
    tally = Tally().add([0, 0, 1, 1], {"a": [0, 0, 1, 1], "b": ["x", "y", "x", "y"]})
    assert tally.symbols == 4
    # Each column alone may tell nothing where both together tell all.
    secret = np.array([0, 1, 1, 0] * 25)
    a, b = np.array([0, 0, 1, 1] * 25), np.array([0, 1, 0, 1] * 25)
    assert plug_in.discrete(Tally().add(secret, a), paired=False).squared == pytest.approx(0, abs=1e-12)
    assert plug_in.discrete(Tally().add(secret, {"a": a, "b": b}), paired=False).squared == pytest.approx(1)


def test_weights_are_repeated_rows():
    weights = RNG.integers(0, 4, 200)
    repeated = np.repeat(np.arange(200), weights)
    for output in (OUTPUTS["whole"], OUTPUTS["text"], NUMBERS):
        for noise in (None, 0.2):
            if noise is None or output is NUMBERS:
                weighted = Tally(noise=noise).add(SECRET, output, weights=weights)
                assert table(weighted) == table(Tally(noise=noise).add(SECRET[repeated], output[repeated]))


@pytest.mark.parametrize(
    ("secret", "positive", "negative"),
    [
        ([True, False], True, False),
        (["no", "yes"], "yes", "no"),
        ([1, -1], 1, -1),
        ([0.0, 1.0], 1.0, 0.0),
        (np.array(["b", "a"], dtype=object), "b", "a"),
    ],
)
def test_any_two_values_are_a_secret(secret, positive, negative):
    tally = Tally().add(secret, [1, 2])
    assert (tally.positive, tally.negative) == (positive, negative)


BAD = {
    "three secrets": ([0, 1, 2], [1, 1, 1], "exactly two values"),
    "one class": ([1, 1, 1], [1, 2, 3], "must take two values in the table"),
    "one boolean": ([True, True], [1, 2], r"got \[True\]"),
    "no rows": ([], [], "must have rows"),
    "nan in the secret": ([0.0, math.nan, 1.0], [1, 2, 3], "secret must have no missing entry, got '1 missing'"),
    "nan in the output": ([0, 1, 1], [1.0, math.nan, math.nan], "got '2 missing'; .*a value of its own"),
    "None in the output": ([0, 1], ["a", None], "missing"),
    "mixed types": ([0, 1], ["a", 1], "entries of one type, got 'text, whole'"),
    "mixed secrets": ([0, "a"], [1, 2], "secret must hold entries of one type"),
    "booleans and numbers": ([0, 1], [True, 2], "one type"),
    "lengths": ([0, 1, 1], [1, 2], "as many rows as secret, 3"),
    "a table as the secret": (np.zeros((2, 2)), [1, 2], "one column"),
    "dates": ([0, 1], np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"), "numbers, booleans or text"),
    "objects": ([0, 1], [{}, {}], "one type"),
    "masked": ([0, 1], np.ma.masked_array([1, 2], mask=[0, 1]), "masked"),
    "huge": ([0, 1], np.array([2**64 - 1, 1], dtype=np.uint64), "int64"),
}


@pytest.mark.parametrize("name", BAD)
def test_tables_that_cannot_be_used_are_refused_in_words(name):
    secret, output, words = BAD[name]
    with pytest.raises(InputError, match=words):
        Tally().add(secret, output).positive  # noqa: B018


def test_a_constant_output_is_counted():
    assert plug_in.discrete(Tally().add(SECRET, np.zeros(200)), paired=False).squared < 1e-12


def test_batches_have_to_stay_alike():
    with pytest.raises(InputError, match="must stay whole"):
        Tally().add([0, 1], [1, 2]).add([0, 1], [1.5, 2.5])
    with pytest.raises(InputError, match="exactly two values"):
        Tally().add([0, 1], [1, 2]).add([0, 2], [1, 2])
    with pytest.raises(InputError, match="same noise"):
        Tally(noise=0.1).merge(Tally())
    with pytest.raises(InputError, match="must have counted"):
        Tally().add([0, 1], [1, 2]).merge(Tally().add([0, 1], ["a", "b"]))
    with pytest.raises(InputError, match="numbers where noise"):
        Tally(noise=0.1).add([0, 1], ["a", "b"])
    with pytest.raises(InputError, match="standard deviations of the noise"):
        Tally(noise=1e-9).add([0, 1], [1.0, 2.0])
    with pytest.raises(InputError, match="bins of 0"):
        Tally(width=1e-9).add([0, 1], [1.0, 2.0])
    with pytest.raises(InputError, match="must be finite"):
        Tally(noise=0.1).add([0, 1], [1.0, math.inf])
    with pytest.raises(InputError, match=r"whole numbers .*importance weights"):
        Tally().add([0, 1], [1, 2], weights=[0.5, 1.5])


def test_a_failed_batch_leaves_the_tally_as_it_was():
    tally = Tally().add([0, 1], [1, 2])
    with pytest.raises(InputError):
        tally.add([0, 2], [1, 2])
    assert table(tally) == table(Tally().add([0, 1], [1, 2]))
    assert tally.rows == [1, 1]
