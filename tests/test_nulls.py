"""The league of nulls counts what it says it counts; peers that are not installed are told, and are no error."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def nulls():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("nulls")
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_claims_are_counted_one_by_one(nulls):
    seen = []

    def every_third(members, others, seed):
        seen.append((members[0], len(members), len(others)))
        return seed % 3 == 0

    estimator = nulls.Estimator(package="none", call="none", promise=0.05, claims=every_third, share=0.5)
    found = nulls.counted(estimator, nulls.unequal, runs=40)
    assert (found.claimed, found.runs) == (7, 20)
    assert {(members, others) for _, members, others in seen} == {(1800, 200)}
    assert len({first for first, _, _ in seen}) == 20  # fresh draws
    again = [first for first, _, _ in seen]
    seen.clear()
    nulls.counted(estimator, nulls.unequal, runs=40)
    assert [first for first, _, _ in seen] == again  # the same for every estimator


def test_a_promise_is_broken_only_where_the_count_shows_it(nulls):
    verdicts = {
        claimed: nulls.Count(claimed=claimed, runs=300).verdict(0.05) for claimed in (0, 1, 15, 24, 29, 33, 300)
    }
    assert verdicts == {0: "kept", 1: "kept", 15: "not refuted", 24: "not refuted", 29: "not refuted"} | {
        33: "broken",
        300: "broken",
    }
    low, high = nulls.Count(claimed=40, runs=40).limits
    assert low == pytest.approx((nulls.INTERVAL / 2) ** (1 / 40))
    assert high == 1


def test_an_estimator_that_breaks_its_promise_is_found_out(nulls):
    """One that compares two means claims a leak in every second draw."""
    careless = nulls.Estimator(
        package="none", call="none", promise=0.05, claims=lambda one, other, _: one.mean() > other.mean()
    )
    found = nulls.counted(careless, nulls.noise, runs=100)
    assert 25 < found.claimed < 75
    assert found.verdict(0.05) == "broken"


def test_nothing_leaks_in_the_nulls_and_something_in_the_leak(nulls):
    for draw in nulls.NULLS.values():
        drawn = [draw(np.random.default_rng(seed)) for seed in range(200)]
        members, others = (np.concatenate(side) for side in zip(*drawn, strict=True))
        assert abs(members.mean() - others.mean()) < 0.03
    assert len(np.unique(np.concatenate(nulls.ties(np.random.default_rng(0))))) == 5
    members, others = nulls.leak(np.random.default_rng(0))
    assert members.mean() - others.mean() > 0.4


def test_ours_keeps_its_promise_and_finds_a_leak(nulls, monkeypatch):
    """As in the environment of the peers, which has no torch."""
    monkeypatch.setattr("tacit.audit.attacks.fitting", lambda _: ("threshold", "histogram", "boosting"))
    for estimator in nulls.ours():
        assert nulls.counted(estimator, nulls.noise, runs=2).claimed == 0, estimator.call
        assert nulls.counted(estimator, nulls.leak, runs=2).claimed == 1, estimator.call


def test_peers_that_are_not_installed_are_told(nulls, monkeypatch, capsys):
    def absent():
        importlib.import_module("a_package_that_nobody_has")
        yield

    monkeypatch.setattr(nulls, "PEERS", {"absent-peer": absent})
    assert {estimator.package for estimator in nulls.installed()} == {"tacit-privacy"}
    assert "absent-peer is not installed here, and is left out" in capsys.readouterr().err


def test_the_benchmark_says_beforehand_how_long_it_takes(nulls, monkeypatch, capsys):
    claims = iter([True] * 4 + [False] * 4 + [True] + [False] * 10)  # on noise, ties, unequal sizes and a leak
    estimator = nulls.Estimator(package="tacit-privacy", call="any", promise=0.05, claims=lambda *_: next(claims))
    monkeypatch.setattr(nulls, "PEERS", {})
    monkeypatch.setattr(nulls, "ours", lambda: iter([estimator]))
    monkeypatch.setattr(sys, "argv", ["nulls.py", "--runs", "4"])
    nulls.main()
    printed = capsys.readouterr()
    assert printed.err.splitlines()[0].endswith("minutes on one core with all peers")
    last = printed.out.splitlines()[-1]
    assert last.startswith("| `any` | 5 % | 4 of 4 (15.0 – 100.0 %) broken | 0 of 4 (")
    assert "| 1 of 4 (" in last
    assert last.endswith("| 0 of 1 |")
