"""League of nulls: how often does an estimator of leakage claim a leak where nothing leaks?

python benchmarks/nulls.py [--runs 300] > tables.md

Peers are used where they are installed, each with its own code; those that are not are named on stderr. One
environment holds all of them, most without what their other parts need:

    pip install jax-privacy==2.0.0 scikit-learn==1.7.2 statsmodels immutabledict pandas
    pip install --no-deps tensorflow-privacy==0.8.12 sacroml==2.0.1 anonymeter==1.1.0 privacy-estimates==0.1.0.post1

Every estimator sees the same draws. It claims a leak where the lower limit that it reports for ε or for the advantage
is above 0, where that of the AUC is above 1/2, or where its p-value is below 0.05.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from tacit.audit import attempts, audit, certify
from tacit.theory.confidence import binomial_lower, binomial_upper

Scores = NDArray[np.float64]
Claims = Callable[[Scores, Scores, int], bool]
"""Whether an estimator claims a leak: from members' scores, others' scores, and a seed."""

LEVEL = 0.05
"""What is asked of every estimator that can be asked: at most this share of false claims."""
DELTA = 1e-5
"""Differential privacy's δ, of estimators that need one."""
INTERVAL = 0.001
"""The chance that an interval around a counted share misses the true one."""
RUNS = 300
SECONDS = 240
"""What RUNS take on one core with all peers, about."""


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """An estimator with its settings, and what it promises."""

    package: str
    call: str
    promise: float
    claims: Claims
    share: float = 1.0
    """Of the runs: slow estimators see the first draws alone."""


@dataclass(frozen=True, kw_only=True)
class Count:
    """How often an estimator claimed a leak."""

    claimed: int
    runs: int

    @property
    def limits(self) -> tuple[float, float]:
        """Clopper–Pearson limits of the share, which miss it with probability INTERVAL at most."""
        each = {"trials": self.runs, "failure_probability": INTERVAL / 2}
        return binomial_lower(self.claimed, **each), binomial_upper(self.claimed, **each)  # type: ignore[arg-type]

    def verdict(self, promise: float) -> str:
        """Whether the promise is broken, as far as the count can show it."""
        low, high = self.limits
        return "broken" if low > promise else "kept" if high <= promise else "not refuted"


def noise(rng: np.random.Generator, members: int = 1000, others: int = 1000) -> tuple[Scores, Scores]:
    return rng.standard_normal(members), rng.standard_normal(others)


def ties(rng: np.random.Generator) -> tuple[Scores, Scores]:
    members, others = noise(rng)
    return np.clip(np.rint(members), -2, 2), np.clip(np.rint(others), -2, 2)


def unequal(rng: np.random.Generator) -> tuple[Scores, Scores]:
    return noise(rng, 1800, 200)


def leak(rng: np.random.Generator) -> tuple[Scores, Scores]:
    members, others = noise(rng)
    return members + 0.5, others


NULLS: dict[str, Callable[[np.random.Generator], tuple[Scores, Scores]]] = {
    "noise": noise,
    "ties": ties,
    "unequal": unequal,
}


def counted(
    estimator: Estimator, draw: Callable[[np.random.Generator], tuple[Scores, Scores]], *, runs: int, seed: int = 0
) -> Count:
    """How often the estimator claims a leak in fresh draws; run r draws the same for every estimator."""
    taken = max(1, round(runs * estimator.share))
    claimed = 0
    for run in range(taken):
        members, others = draw(np.random.default_rng([seed, run]))
        claimed += bool(estimator.claims(members, others, run))
    return Count(claimed=claimed, runs=taken)


def ours() -> Iterator[Estimator]:
    def table(members: Scores, others: Scores) -> tuple[NDArray[np.bool_], Scores]:
        return np.repeat([True, False], [len(members), len(others)]), np.concatenate([members, others])

    def interval(members: Scores, others: Scores, seed: int) -> bool:
        return audit(*table(members, others), seed=seed).low > 0

    def shown(members: Scores, others: Scores, seed: int) -> bool:
        secret, output = table(members, others)
        certificate = certify(secret, output, method="continuous")
        found = attempts(secret, output, certificate=certificate, failure_probability=LEVEL, seed=seed)
        return max(attempt.epsilon for attempt in found) > 0

    package, share = "tacit-privacy", 0.5
    yield Estimator(package=package, call="audit(…).low", promise=0.1 * LEVEL, claims=interval, share=share)
    call = f"attempts(…, failure_probability={LEVEL}): ε"
    yield Estimator(package=package, call=call, promise=LEVEL, claims=shown, share=share)


def jax_privacy() -> Iterator[Estimator]:
    auditing = importlib.import_module("jax_privacy.auditing")

    def one(call: str, method: str, *arguments: Any, share: float = 1.0, strategy: Any = None) -> Estimator:
        def claims(members: Scores, others: Scores, seed: int) -> bool:
            options = {} if strategy is None else {"threshold_strategy": strategy(seed)}
            found = getattr(auditing.CanaryScoreAuditor(members, others), method)(LEVEL, *arguments, **options)
            return bool(found > 0)

        return Estimator(package="jax-privacy", call=call, promise=LEVEL, claims=claims, share=share)

    def auroc(members: Scores, others: Scores, seed: int) -> bool:
        asked = auditing.BootstrapParams.confidence_interval(confidence=1 - LEVEL, seed=seed)
        low, _ = auditing.CanaryScoreAuditor(members, others).attack_auroc(bootstrap_params=asked)
        return bool(low > 0.5)

    yield one("epsilon_from_gdp", "epsilon_from_gdp", DELTA)
    yield one("epsilon_clopper_pearson", "epsilon_clopper_pearson")
    yield one("epsilon_clopper_pearson, two-sided", "epsilon_clopper_pearson", 0, False)
    yield one(
        "epsilon_clopper_pearson, Split", "epsilon_clopper_pearson", strategy=lambda seed: auditing.Split(seed=seed)
    )
    yield one(
        "epsilon_clopper_pearson, MultiSplit",
        "epsilon_clopper_pearson",
        strategy=lambda seed: auditing.MultiSplit(seed=seed),
        share=0.05,
    )
    yield one(
        "epsilon_clopper_pearson, Explicit(0)", "epsilon_clopper_pearson", strategy=lambda _: auditing.Explicit(0.0)
    )
    yield one("epsilon_one_run", "epsilon_one_run", DELTA)
    yield one("epsilon_one_run_fdp", "epsilon_one_run_fdp", DELTA, share=0.1)
    yield Estimator(package="jax-privacy", call="attack_auroc, bootstrap", promise=LEVEL, claims=auroc, share=0.04)


def tensorflow_privacy() -> Iterator[Estimator]:
    sys.skip_tf_privacy_import = True  # type: ignore[attr-defined]  # its own way to leave TensorFlow out
    bounds = importlib.import_module("tensorflow_privacy.privacy.privacy_tests.epsilon_lower_bound")

    def one(call: str, method: Any, *, share: float = 1.0, **options: Any) -> Estimator:
        def claims(members: Scores, others: Scores, _seed: int) -> bool:
            found = bounds.EpsilonLowerBound(members, others, LEVEL, **options).compute_epsilon_lower_bound(method, k=1)
            return bool(found.size and found[0] > 0)

        return Estimator(package="tensorflow-privacy", call=call, promise=LEVEL, claims=claims, share=share)

    katz, clopper = bounds.BoundMethod.KATZ_LOG, bounds.BoundMethod.CLOPPER_PEARSON
    yield one("EpsilonLowerBound, katz-log", katz)
    yield one("EpsilonLowerBound, bailey", bounds.BoundMethod.BAILEY)
    yield one("EpsilonLowerBound, clopper-pearson", clopper, share=0.25)
    for threshold in (0.0, 0.25):
        name, fixed = f"one-sided, threshold {threshold:g}", {"two_sided_threshold": False}
        yield one(f"EpsilonLowerBound, katz-log, {name}", katz, thresholds=np.array([threshold]), **fixed)
        yield one(f"EpsilonLowerBound, clopper-pearson, {name}", clopper, thresholds=np.array([threshold]), **fixed)


def privacy_estimates() -> Iterator[Estimator]:
    peer = importlib.import_module("privacy_estimates")

    def one(method: str) -> Estimator:
        def claims(members: Scores, others: Scores, _seed: int) -> bool:
            hits, alarms = int((members > 0).sum()), int((others > 0).sum())
            counts = peer.AttackResults(FN=len(members) - hits, FP=alarms, TN=len(others) - alarms, TP=hits)
            return bool(peer.compute_eps_lo(counts, delta=DELTA, alpha=LEVEL, method=method) > 0)

        return Estimator(
            package="privacy-estimates", call=f"compute_eps_lo, {method}, threshold 0", promise=LEVEL, claims=claims
        )

    yield one("beta")
    yield one("jeffreys")


def sacroml() -> Iterator[Estimator]:
    metrics = importlib.import_module("sacroml.metrics")

    def one(key: str, *, in_order: bool = False) -> Estimator:
        def claims(members: Scores, others: Scores, seed: int) -> bool:
            truth = np.repeat([1, 0], [len(members), len(others)])
            guess = 1 / (1 + np.exp(-np.concatenate([members, others])))
            if not in_order:
                order = np.random.default_rng([seed, 1]).permutation(len(truth))
                truth, guess = truth[order], guess[order]
            found = metrics.get_metrics(np.column_stack([1 - guess, guess]), truth)[key]
            return bool(found < LEVEL if key == "P_HIGHER_AUC" else np.exp(-found) < LEVEL)

        call = f"get_metrics: {key}{', members in the first rows' * in_order}"
        return Estimator(package="sacroml", call=call, promise=LEVEL, claims=claims, share=0.5)

    yield one("P_HIGHER_AUC")
    yield one("PDIF02")
    yield one("PDIF001")
    yield one("PDIF02", in_order=True)


def anonymeter() -> Iterator[Estimator]:
    confidence = importlib.import_module("anonymeter.stats.confidence")

    def claims(members: Scores, others: Scores, seed: int) -> bool:
        sizes = len(members), len(members), len(others)
        guessed = int(np.random.default_rng([seed, 1]).binomial(len(members), 0.5))
        found = confidence.EvaluationResults(
            n_attacks=sizes,
            n_success=int((members > 0).sum()),
            n_baseline=guessed,
            n_control=int((others > 0).sum()),
            confidence_level=1 - LEVEL,
        )
        return bool(found.risk().ci[0] > 0)

    yield Estimator(package="anonymeter", call="EvaluationResults.risk().ci, threshold 0", promise=LEVEL, claims=claims)


PEERS: dict[str, Callable[[], Iterator[Estimator]]] = {
    "jax-privacy": jax_privacy,
    "tensorflow-privacy": tensorflow_privacy,
    "privacy-estimates": privacy_estimates,
    "sacroml": sacroml,
    "anonymeter": anonymeter,
}


def installed() -> Iterator[Estimator]:
    """Our estimators, and those of all peers that are here; the others are named on stderr."""
    yield from ours()
    for package, estimators in PEERS.items():
        try:
            yield from estimators()
        except ImportError as missing:
            print(f"{package} is not installed here, and is left out ({missing})", file=sys.stderr)


def sizes_of_claims(runs: int) -> Iterator[str]:
    """How much two estimators of jax-privacy claim on noise, and one of them on scores of known ε."""
    auditing = importlib.import_module("jax_privacy.auditing")

    def found(shift: float, run: int) -> tuple[float, float]:
        members, others = noise(np.random.default_rng([0, run]))
        auditor = auditing.CanaryScoreAuditor(members + shift, others)
        return auditor.epsilon_from_gdp(LEVEL, DELTA), auditor.attack_auroc()

    def spread(values: Scores) -> str:
        return f"{values.min():.2f} to {values.max():.2f}, {np.median(values):.2f} in the median of {len(values)} runs"

    def excess(epsilon: float) -> float:  # of δ, for Gaussians 2 standard deviations apart
        return float(stats.norm.cdf(1 - epsilon / 2) - np.exp(epsilon) * stats.norm.cdf(-1 - epsilon / 2) - DELTA)

    epsilons, areas = np.array([found(0, run) for run in range(runs)]).T
    yield f"`epsilon_from_gdp` on noise, δ = {DELTA:g}: ε from {spread(epsilons)}."
    yield f"`attack_auroc` on noise: above 1/2 in {(areas > 0.5).sum()} of {runs} runs, {spread(areas)}."
    strong = np.array([found(2, run)[0] for run in range(max(1, runs // 15))])
    truth = optimize.brentq(excess, 0, 50)
    yield f"`epsilon_from_gdp` on scores 2 standard deviations apart, where ε is {truth:.2f}: {spread(strong)}."


def line(estimator: Estimator, counts: dict[str, Count], found: Count) -> str:
    cells = []
    for count in counts.values():
        low, high = count.limits
        shares = f"{100 * low:.1f} – {100 * high:.1f} %"
        cells.append(f"{count.claimed} of {count.runs} ({shares}) {count.verdict(estimator.promise)}")
    cells.append(f"{found.claimed} of {found.runs}")
    return f"| `{estimator.call}` | {100 * estimator.promise:g} % | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS, help="draws of each kind; slow estimators see fewer")
    runs = parser.parse_args().runs
    print(f"about {SECONDS * runs / RUNS / 60:.0f} minutes on one core with all peers", file=sys.stderr)
    logging.disable()  # the peers'
    warnings.simplefilter("ignore")
    start, package = time.perf_counter(), ""
    for estimator in installed():
        if estimator.package != package:
            package = estimator.package
            try:
                title = f"{package} {version(package)}"
            except PackageNotFoundError:  # ours, from a checkout
                title = package
            print(f"\n**{title}**\n\n| estimator | promise | {' | '.join(NULLS)} | a leak |")
            print("|---" * (len(NULLS) + 3) + "|")
        counts = {name: counted(estimator, draw, runs=runs) for name, draw in NULLS.items()}
        print(line(estimator, counts, counted(estimator, leak, runs=runs // 4)), flush=True)
    if "jax-privacy" in PEERS and importlib.util.find_spec("jax_privacy") is not None:
        print("", *sizes_of_claims(runs), sep="\n\n")
    print(f"{time.process_time():.0f} s of processor, {time.perf_counter() - start:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
