"""Lower limits on ε from guesses of coins, against a Gaussian mechanism whose ε is known.

    python benchmarks/guesses.py

10 000 coins are told with normal noise, and the 250 largest and smallest values guessed, all in one run: the guesses
depend on each other. Beside the limits of `tacit.theory.membership` stands what Markov's inequality gives for those
guesses that δ gives away: then P(W ≥ v) ≤ P(Bin(r, p) ≥ v − j) + mδ/(2(j + 1)) for every j.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from tacit.theory.confidence import binomial_lower
from tacit.theory.divergences import gaussian_epsilon
from tacit.theory.membership import guessing_distance, guessing_epsilon

COINS, EACH, DELTA = 10_000, 250, 1e-5
RUNS, FAILURE = 400, 0.1


def by_markov(correct: int, *, guesses: int, coins: int, failure_probability: float, delta: float) -> float:
    best = 0.0
    for spared in range(correct):
        left = failure_probability - coins * delta / (2 * (spared + 1))
        if left > 0:
            share = binomial_lower(correct - spared, trials=guesses, failure_probability=left)
            best = max(best, math.log(share / (1 - share)) if share > 0.5 else 0.0)
    return best


def main() -> None:
    rng = np.random.default_rng(0)
    asked: dict[str, Any] = {"guesses": 2 * EACH, "coins": COINS, "failure_probability": FAILURE}
    rows = []
    for distance in (0.5, 1.0, 2.0, 3.0):
        true = gaussian_epsilon(DELTA, distance=distance)
        shown: dict[str, list[float]] = {"by Markov's inequality": [], "by the curve of (ε, δ)": [], "by μ": []}
        known: dict[int, tuple[float, float, float]] = {}
        for _ in range(RUNS):
            inside = rng.random(COINS) < 0.5
            order = np.argsort(rng.normal(size=COINS) + distance * inside)
            right = int(inside[order[-EACH:]].sum() + (~inside[order[:EACH]]).sum())
            if right not in known:
                mu = guessing_distance(right, **asked)
                known[right] = (
                    by_markov(right, **asked, delta=DELTA),
                    guessing_epsilon(right, **asked, delta=DELTA),
                    gaussian_epsilon(DELTA, distance=mu),
                )
            for one, limit in zip(shown.values(), known[right], strict=True):
                one.append(limit)
        rows.append(
            {
                "μ": distance,
                "ε": round(true, 2),
                **{name: round(float(np.median(found)), 2) for name, found in shown.items()},
                **{f"false {name}": sum(limit > true for limit in found) for name, found in shown.items()},
            }
        )
    print(json.dumps(rows, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
