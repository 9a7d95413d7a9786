"""A job has one thread to itself, whatever libraries its process has loaded by then."""

import subprocess
import sys

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from tacit.runtime.workers import _run

LATER = """
from tacit.runtime.workers import _run
from threadpoolctl import threadpool_info, threadpool_limits

def threads():
    return [pool["num_threads"] for pool in threadpool_info()]

_, before = _run(0, threads)
import scipy.linalg
with threadpool_limits(2):
    assert threads() == [2] * len(threads())
    assert len(threads()) > len(before)
    assert _run(1, threads) == (1, [1] * len(threads()))
"""


def threads():
    return {pool["num_threads"] for pool in threadpool_info()}


def test_a_job_has_one_thread_and_leaves_the_others_as_they_were():
    assert np.ones(2) @ np.ones(2) == 2  # NumPy's library is there
    with threadpool_limits(2):
        assert threads() == {2}
        assert _run(7, threads) == (7, {1})
        assert threads() == {2}


def test_a_library_loaded_after_the_first_job_has_one_thread_too():
    finished = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
