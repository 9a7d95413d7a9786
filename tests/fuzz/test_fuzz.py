"""A short run of the fuzzer; `python tests/fuzz/fuzzer.py --cases 100000` is a long one."""

import os

import pytest
from fuzzer import fuzz

CASES = 400


@pytest.mark.skipif(os.name != "posix", reason="pipes and limits of memory are POSIX's")
def test_damaged_and_hostile_files_are_one_line_or_fine():
    counts, _, wrong = fuzz(CASES, seed=0)
    assert not wrong, "\n".join(wrong)
    assert sum(counts.values()) == CASES
