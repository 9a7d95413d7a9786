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
    "one boolean": ([True, True], [1, 2], "must take two values in the table, got 'one'"),
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
    "whole numbers that floats cannot hold": ([0, 1], [2**53 + 1, 0.5], "at most 2\\*\\*53 in size among floats"),
    "such, negative": ([0, 1], [-(2**53) - 1, 0.5], "at most 2\\*\\*53 in size among floats"),
    "text that ends in NUL": ([0, 1], ["a", "a\0"], "must not end in what NumPy drops"),
    "such objects": ([0, 1], np.array(["a", "a\0"], dtype=object), "must not end in what NumPy drops"),
}


@pytest.mark.parametrize("name", BAD)
def test_tables_that_cannot_be_used_are_refused_in_words(name):
    secret, output, words = BAD[name]
    with pytest.raises(InputError, match=words):
        Tally().add(secret, output).positive  # noqa: B018


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="no wider floats here")
def test_floats_wider_than_64_bits_are_refused():
    wide = np.longdouble(1) + np.longdouble(2) ** -60 * np.arange(2)
    with pytest.raises(InputError, match="must fit into float64"):
        Tally().add([0, 1], wide)
    with pytest.raises(InputError, match="entries of one type, got 'longdouble'"):
        Tally().add([0, 1], list(wide))


def test_floats_are_symbols_bit_by_bit():
    """What rounding leaves of the sign of small numbers tells the secret, alone and beside other columns."""
    secret = np.arange(200) % 2
    rounded = np.round(np.where(secret == 1, 0.3, -0.3))
    assert (rounded == 0).all()
    for output in (rounded, rounded.tolist(), {"a": rounded, "b": np.zeros(200)}, np.column_stack([rounded, rounded])):
        tally = Tally().add(secret[:77], rows(output, slice(77))).add(secret[77:], rows(output, slice(77, 200)))
        assert tally.symbols == 2
        assert plug_in.discrete(tally, paired=False).squared == pytest.approx(1)
    # As numbers the two zeros are one, and noise hides the sign.
    assert plug_in.smoothed(Tally(noise=0.1).add(secret, rounded), paired=False).squared < 1e-4
    assert Tally(width=0.1).add(secret, rounded).symbols == 1


@given(st.lists(st.floats(allow_nan=False) | st.just(-0.0), min_size=2, max_size=20))
def test_floats_are_counted_in_ascending_order(values):
    """Each its own number of times, so that the order of the counts is seen; the two zeros one after the other."""
    values = list({value.hex(): value for value in values}.values())
    weights = 1 + np.arange(len(values))
    both = Tally().add([0] * len(values), values, weights=weights).add([1], [values[0]])
    order = sorted(range(len(values)), key=lambda place: (values[place], math.copysign(1, values[place])))
    assert both.counts()[1].tolist() == [int(weights[place]) for place in order]


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_rows_beyond_exact_counting_are_refused(columns):
    """Masses on the grid are counts times 2**(bits·columns), in int64."""
    tally = Tally(noise=1.0).add([0, 1], np.array([[0.0] * columns, [1.0] * columns]), weights=[2**31, 2**31])
    exact = plug_in.smoothed(tally, paired=False)
    for _ in range(10 if columns == 1 else 0):
        assert plug_in.smoothed(tally.merge(tally), paired=False) == exact
    with pytest.raises(InputError, match=r"must have at most \d+ rows here"):
        tally.merge(tally)
    with pytest.raises(InputError, match="must have at most"):
        tally.add([0] * 1024, np.zeros((1024, columns)), weights=[2**32] * 1024)
    assert sum(tally.rows) == (2**42 if columns == 1 else 2**32)
    assert plug_in.smoothed(tally, paired=False) == exact


def test_heavy_rows_are_rows():
    """A weight of 2**24 on a grid of two columns: sums beyond what float64 adds up exactly."""
    output = np.array([[0.1, 0.7], [0.3, 0.2], [0.1, 0.7]])
    light = Tally(noise=1.0).add([0, 1, 0], output, weights=[1, 3, 2])
    heavy = Tally(noise=1.0).add([0, 1, 0], output, weights=[2**24, 3 * 2**24, 2 * 2**24])
    for one, other in zip(light.counts(), heavy.counts(), strict=True):
        assert (one * 2**24 == other).all()


def test_noise_and_bins_too_small_to_divide_by_are_refused():
    for options in ({"noise": 1e-307}, {"width": 5e-324}):
        with pytest.raises(InputError, match="≥ 1e-300"):
            Tally(**options)
    for columns in (1, 2):
        with pytest.raises(InputError, match="standard deviations of the noise around 0, got 'one beyond'"):
            Tally(noise=1e-299).add([0, 1], np.array([[0.0] * columns, [1e300] * columns]))
    with pytest.raises(InputError, match="bins of 0"):
        Tally(width=1e-299).add([0, 1], [0.0, 1e300])


def test_whole_numbers_that_floats_cannot_hold_are_refused_where_noise_is():
    with pytest.raises(InputError, match=r"below 2[*][*]53"):
        Tally(noise=0.1).add([0, 1], np.array([[2**53] * 4, [2**53 + 1] * 4]))


def test_a_constant_output_is_counted():
    assert plug_in.discrete(Tally().add(SECRET, np.zeros(200)), paired=False).squared < 1e-12


def test_batches_have_to_stay_alike():
    with pytest.raises(InputError, match="must stay whole"):
        Tally().add([0, 1], [1, 2]).add([0, 1], [1.5, 2.5])
    with pytest.raises(InputError, match="must stay whole"):
        Tally().add([0, 1], [1, 2]).add([0, 1], [True, False])
    with pytest.raises(InputError, match="must stay float, text"):
        Tally().add([0], {"a": [1.0], "b": ["x"]}).add([1], {"a": [2], "b": ["x"]})
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


@pytest.mark.parametrize("make", ["list", "polars", "pandas", "arrow"])
def test_text_that_ends_in_nul_is_refused_in_any_container(make):
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    texts = ["a", "a\0"] * 10
    column = {"list": list, "polars": pl.Series, "pandas": pd.Series, "arrow": pa.array}[make](texts)
    with pytest.raises(InputError, match="must not end in what NumPy drops"):
        Tally().add([0, 1] * 10, column)


def test_long_texts_are_refused_before_room_is_made_for_them():
    """NumPy would take the longest one's room for every row."""
    long = ["a"] * 999 + ["b" * 10**6]
    for column in (long, np.array(["a", "b" * 201] * 500)):
        with pytest.raises(InputError, match="must hold texts of 200 characters or fewer, got 'one of"):
            Tally().add([0, 1] * 500, column)
    Tally().add([0, 1], ["a" * 200, "b"])


def test_refusals_do_not_show_what_columns_hold():
    names = [f"Jane Doe {place}" for place in range(20)]
    tries = [
        lambda: Tally().add(names, [1] * 20),
        lambda: Tally().add([names, names], [1] * 20),
        lambda: Tally().add([0, 1] * 10, [names, 1]),
        lambda: Tally(noise=1.0).add([0, 1] * 10, names),
        lambda: Tally().add(["Jane Doe"] * 20, [1] * 20).positive,
        lambda: Tally().add([0, 1] * 10, [1] * 20, weights=names),
    ]
    for trial in tries:
        with pytest.raises(InputError) as refusal:
            trial()
        assert "Jane" not in str(refusal.value)


def test_every_missing_entry_is_counted():
    import pandas as pd

    bits = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000], dtype=np.uint64).view(np.float64)
    for column in ([*bits, 1.0], bits[[0, 1, 2]], pd.Series([None, math.nan, pd.NA, "a"]), [None, math.nan, pd.NA, 1]):
        with pytest.raises(InputError, match="got '3 missing'"):
            Tally().add([0, 1, 0, 1][: len(column)], column)
