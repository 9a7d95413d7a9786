"""Votes of private records near public ones: what a million of them take, and how many labels are right.

    python benchmarks/neighbours.py [--data FOLDER]

The first part needs no data: 10⁶ private records of 64 numbers, 10⁴ public ones, 200 queries, in this process. The
second reads mnist/*.gz from the folder: the first public records in the order of their file are asked about, constants
are those of `mechanism="neighbours"`, and the shares of labels that are right are means over both splits of `tacit
reproduce mapl` and five draws of the noise. Students are measured by `tacit reproduce mapl`.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import Any, cast

import numpy as np

from tacit.learning import VoteQuota, private_count
from tacit.learning.nearby import NearbyVoters, nearby_choice
from tacit.learning.shares import Shares
from tacit.reproduce.councils import LOADERS, Data

KEY, DELTA, DRAWS = bytes(32), 1e-5, 5
CASES = ((0.25, 2000), (0.5, 9000))


def million() -> None:
    """The time of one core, and the most memory."""
    generator = np.random.default_rng(0)
    public, private = generator.normal(size=(10_000, 64)), generator.normal(size=(1_000_000, 64))
    start = time.process_time()
    voters = NearbyVoters(public, rank=20, quota=3, classes=10)
    voters.fit(private, generator.integers(0, 10, len(private)), people=None, key=KEY)
    kept = time.process_time()
    voters.counts(public[:200])
    spent = time.process_time() - kept
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"10⁶ records of 64 numbers: kept in {kept - start:.1f} s, 200 queries in {spent:.1f} s, {memory:.1f} GB")


def right(data: Data, epsilon: float, queries: int) -> tuple[float, Any]:
    """The share of labels that are right, and the constants."""
    shares, asked = Shares(epsilon=epsilon, delta=DELTA, counting=True), np.arange(queries)
    chosen = nearby_choice(
        data.public_features,
        np.arange,
        voters=private_count(len(data.private), epsilon=shares.count),
        epsilon=shares.left[0],
        delta=shares.left[1],
        queries=queries,
        changed=1,
    )
    mechanism = cast(VoteQuota, chosen.mechanism)
    voters = NearbyVoters(data.public_features, rank=mechanism.rank, quota=mechanism.quota, classes=data.classes)
    counts = voters.fit(data.private_features, data.labels, people=None, key=KEY).counts(data.public_features[asked])
    found = []
    for _ in range(DRAWS):
        session = mechanism.session()
        labels = [int(np.argmax(cast(tuple[int, ...], session.answer(row)))) for row in counts]
        found.append(np.mean(labels == data.truth[asked]))
    return float(np.mean(found)), mechanism


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    folder = parser.parse_args().data
    million()
    if folder is None:
        return
    splits = LOADERS["mnist"](folder)
    for epsilon, queries in CASES:
        shares, mechanisms = zip(*(right(data, epsilon, queries) for data in splits.values()), strict=True)
        constants = ", ".join(f"rank {made.rank}, quota {made.quota}, σ {made.sigma:.0f}" for made in mechanisms)
        print(
            f"MNIST, ε = {epsilon:g}, {queries} queries: {100 * np.mean(shares):.1f} % right ({constants})", flush=True
        )


if __name__ == "__main__":
    main()
