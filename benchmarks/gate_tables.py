"""The gate's designs for common budgets, searched for, proven, and stored with the package: some minutes.

python benchmarks/gate_tables.py src/tacit/learning/mechanisms/gate_designs.npz
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

from tacit.learning.mechanisms import gate_design
from tacit.theory.gate import ONE, confirm_delta, gate_delta

EPSILONS = (0.5, 1.0, 2.0, 4.0)
DELTA = 1e-5


def main() -> None:
    designs = {}
    for refusals, epsilon, labels in itertools.product(gate_design.STORED_REFUSALS, EPSILONS, (True, False)):
        start = time.perf_counter()
        found = gate_design.design(epsilon, DELTA, refusals=refusals, labels=labels)
        searched = time.perf_counter() - start
        cost, (least, table) = (gate_delta, (0, found.table)) if labels else (confirm_delta, found.leads)
        spent = cost(epsilon, table=table, refusals=refusals, certificate=found.certificate())
        assert spent <= DELTA
        proven = time.perf_counter() - start - searched
        answered = least + next(place for place, chance in enumerate(table) if chance <= ONE // 100)
        designs[labels, epsilon, DELTA, refusals] = found
        print(
            f"{'gate' if labels else 'confirm':7} ε = {epsilon:g}, T = {refusals}: 99 % from {answered}, "
            f"δ ≤ {spent:.6g}, searched {searched:.1f} s, proven {proven:.1f} s",
            flush=True,
        )
        gate_design.store(Path(sys.argv[1]), designs)


if __name__ == "__main__":
    main()
