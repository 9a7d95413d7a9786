"""Rows of a table as queries: what is refused, and when two are the same."""

import pytest

from tacit.core.errors import InputError
from tacit.learning.columns import Columns
from tacit.service.rows import MOST_ROWS, Rows

TABLE = {"age": [1.0, 2.0, 4.0], "colour": ["red", "blue", "red"]}
ROWS = Rows(Columns().fit(TABLE))


def test_rows_by_name_and_in_order_are_the_same():
    by_name, in_order = ROWS.read([{"colour": "red", "age": 3}, [3.0, "red"]])
    assert by_name == in_order
    assert ROWS.content(by_name) == ROWS.content(in_order)
    assert (ROWS.numbers([by_name]) == Columns().fit(TABLE).transform({"age": [3.0], "colour": ["red"]})).all()


def test_different_rows_are_different_bytes():
    """However text is made up, it does not look like another row."""
    given = [[0.0, "a"], [0.0, None], [None, "a"], [0.0, "an"], [0.0, "n"], [1.0, "a"], [5e-324, "a"], [None, None]]
    assert len({ROWS.content(row) for row in ROWS.read(given)}) == len(given)
    assert len({ROWS.content(row) for row in ROWS.read([[0.0, "a"], [-0.0, "a"], [0, "a"]])}) == 1
    assert ROWS.content(ROWS.read([[1.0, "\ud800"]])[0])


def test_text_is_what_teachers_know_it_as():
    """Otherwise one row would be two queries, or a category that nobody has learned."""
    same = (
        [[0.0, 1], [0.0, 1.0], [0.0, "1"], [0.0, " 1 "]],
        [[0.0, None], [0.0, ""], [0.0, "NA"]],
        [[0.0, True], [0.0, "TRUE"]],
    )
    for rows in same:
        assert len({ROWS.content(row) for row in ROWS.read(rows)}) == 1
    table = Rows(Columns().fit({"code": ["1", "2", "x"]}))
    assert table.numbers(table.read([[1.0]])).tolist() == [[1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "rows must be a list of 1 to 500 rows, got 'NoneType'"),
        ([], "got '0 rows'"),
        ([[1.0, "a"]] * (MOST_ROWS + 1), "got '501 rows'"),
        ([5], r"rows\[0\] must be an object by column name"),
        ([[1.0]], r"rows\[0\] must have 2 values, one for each column, got '1 values'"),
        ([[1.0, "a"], {"age": 1, "color": "a"}], r"rows\[1\] .* got 'color'; did you mean 'colour'"),
        ([{"age": 1}], r"got 'no colour'; add it"),
        ([["1", "a"]], r"rows\[0\].age must be a finite number, or null where it is missing, got '1'"),
        ([[True, "a"]], "must be a finite number"),
        ([[float("nan"), "a"]], "must be a finite number"),
        ([[10**400, "a"]], "must be a finite number"),
        ([[1.0, ["a"]]], "must be text of at most 1000 characters"),
        ([[1.0, "a" * 1001]], "must be text of at most 1000 characters"),
    ],
)
def test_what_is_no_row_of_this_table_gets_one_line(given, says):
    with pytest.raises(InputError, match=says) as error:
        ROWS.read(given)
    assert "\n" not in str(error.value)
