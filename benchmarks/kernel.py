"""The limits for noisy vectors of more than three numbers, by the plug-in and by a kernel, in the same run.

python benchmarks/kernel.py

The first has the share of the failure probability that it had before there was a kernel, the second its own share, and
the last is what `certify` returns: docs/proofs/kernels.md.
"""

from __future__ import annotations

import math
import time

import numpy as np
from scipy import stats

from tacit.audit import Tally, certify, plug_in
from tacit.audit.limits import shares
from tacit.audit.row_pairs import row_pairs
from tacit.theory.certificates import variation_upper
from tacit.theory.kernels import variation_kernel

FAILURE = 0.05


def main() -> None:
    print(f"certified advantage, outputs N(0, 1) in each coordinate, one of them moved; failure probability {FAILURE}")
    for rows, columns, noise, truth in (
        (4_000, 32, 2.0, 0.0),
        (6_000, 64, 2.0, 0.0),
        (4_000, 32, 4.0, 0.0),
        (4_000, 32, 8.0, 0.0),
        (4_000, 32, 16.0, 0.0),
        (10_000, 32, 4.0, 0.0),
        (4_000, 8, 1.0, 0.0),
        (4_000, 8, 2.0, 0.0),
        (4_000, 8, 4.0, 0.0),
        (500, 8, 4.0, 0.0),
        (4_000, 32, 8.0, 0.03),
        (4_000, 32, 8.0, 0.1),
        (4_000, 8, 4.0, 0.1),
    ):
        source, secret = np.random.default_rng(0), np.arange(rows) % 2
        outputs = source.normal(size=(rows, columns))
        outputs[:, 0] += 2 * stats.norm.ppf((1 + truth) / 2) * math.sqrt(1 + noise**2) * secret
        tally = Tally(noise=noise).add(secret, outputs)
        plug_ins = plug_in.sampled(tally, paired=False, failure_probability=0.1 * FAILURE, seed=0)
        before = variation_upper(
            plug_ins.variation, positives=rows // 2, negatives=rows // 2, failure_probability=0.45 * FAILURE
        )
        start = time.process_time()
        share = 0.9 * FAILURE * shares("joint", "sharp", "noisy", columns=columns).kernel
        kernel = variation_kernel(*row_pairs(tally), noise=noise, failure_probability=share)
        spent = time.process_time() - start
        found = certify(secret, outputs, noise=noise, failure_probability=FAILURE).advantage
        print(
            f"  {rows:6d} rows of {columns:2d}, noise {noise:4g}, truth {truth:4g}: {before:.4f}, by a kernel "
            f"{kernel:.4f} ({spent:.0f} s of the processor), certified {found:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
