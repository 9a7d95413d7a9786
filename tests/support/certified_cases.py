"""One certificate of every kind that the checker knows, from Tacit itself, and what Tacit says of changed inputs."""

import contextlib
import functools
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from sklearn.naive_bayes import GaussianNB

from tacit import Ledger, PrivateClassifier
from tacit.audit import certify
from tacit.certificate import certified
from tacit.core.errors import TacitError
from tacit.learning.mechanisms import AdaptiveVector, ConfidentGNMax, Confirm, Gate, GNMax, SparseVector, StableRelease
from tacit.learning.study.plan import report as planned
from tacit.reconstruction import (
    Gallery,
    Gaussian,
    Jittered,
    bayes_bound,
    identification_bound,
    posterior_bound,
)
from tacit.theory import accounting, adaptive_threshold, confidence, divergences, gate, label_moments, open_threshold

READINGS = ("advantage", "balanced accuracy", "error", "squared loss", "bits", "log loss", "auc")


def _table(rows, share, *, leak, outputs=5, seed=0):
    rng = np.random.default_rng(seed)
    secret = np.arange(rows) < share * rows
    seen = rng.integers(0, outputs, rows)
    return secret, np.where(secret & (rng.random(rows) < leak), 0, seen)


def _linear():
    torch.manual_seed(0)
    return torch.nn.Linear(3, 3).double().eval()


def _inputs(rows, seed=0):
    return np.random.default_rng(seed).normal(size=(rows, 3))


def _fitted():
    """A classifier whose fit counts records and finds classes with noise."""
    rng = np.random.default_rng(0)
    records = rng.normal(size=(3000, 2))
    model = PrivateClassifier(GaussianNB(), epsilon=20.0, delta=1e-5, mechanism="gnmax", queries=5)
    return model.fit(records, (records[:, 0] > 0).astype(int), rng.normal(size=(40, 2))).guarantee_


def _ledger():
    ledger = Ledger.open(Path(tempfile.mkdtemp()) / "ledger.sqlite", epsilon=1, delta=Decimal("1e-5"))
    ledger.spend(epsilon=Decimal("0.3"), delta=Decimal("1e-6"), what="one")
    ledger.spend(epsilon=Decimal("0.7"), delta=Decimal("9e-6"), what="two")
    return ledger.guarantee


MADE = {
    "audit": lambda: certify(*_table(4000, 0.5, leak=0.1)).guarantee,
    "audit that leaks nothing": lambda: certify(*_table(4000, 0.5, leak=0.0)).guarantee,
    "audit of many outputs": lambda: certify(*_table(3000, 0.5, leak=0.05, outputs=300)).guarantee,
    "audit of many outputs of unequal classes": lambda: certify(*_table(3000, 0.3, leak=0.0, outputs=200)).guarantee,
    "audit of many outputs, coins tossed again": lambda: (
        certify(*_table(3000, 0.5, leak=0.0, outputs=300, seed=50)).guarantee
    ),
    "audit of many outputs, pairs": lambda: certify(
        *_table(3000, 0.5, leak=0.0, outputs=300), sampling="pairs"
    ).guarantee_of("bits"),
    "audit of pairs": lambda: certify(*_table(3000, 0.51, leak=0.3), sampling="pairs").guarantee,
    "audit of unequal classes": lambda: certify(*_table(3000, 0.2, leak=0.3)).guarantee,
    "audit by squared loss": lambda: certify(*_table(3000, 0.2, leak=0.3), loss="squared").guarantee,
    "audit in closed form": lambda: certify(*_table(3000, 0.2, leak=0.3), loss="squared", form="closed").guarantee,
    "audit by zero-one loss": lambda: certify(*_table(3000, 0.2, leak=0.3), loss="zero-one").guarantee,
    **{
        f"audit, {reading}": functools.partial(
            lambda reading: certify(*_table(400, 0.5, leak=0.3)).guarantee_of(reading), reading
        )
        for reading in READINGS[1:]
    },
    "sparse vector": lambda: (
        SparseVector(epsilon=1.0, delta=1e-6, refusals=5, queries=100, variant="faithful").guarantee
    ),
    "open threshold": lambda: SparseVector(epsilon=1.0, delta=1e-6, refusals=40).guarantee,
    "adaptive threshold": lambda: AdaptiveVector(epsilon=1.0, delta=1e-6, queries=50, teachers=100).guarantee,
    "stable release": lambda: StableRelease(epsilon=2.0, delta=1e-5, queries=20).guarantee,
    "gnmax": lambda: GNMax(epsilon=2.0, delta=1e-6, queries=5, counts=True).guarantee,
    "gnmax labels": lambda: GNMax(epsilon=2.0, delta=1e-6, queries=25).guarantee,
    "confident gnmax": lambda: (
        ConfidentGNMax(epsilon=3.0, delta=1e-5, queries=6, answers=3, threshold=9, ratio=1.5, counts=True).guarantee
    ),
    "confident labels": lambda: ConfidentGNMax(epsilon=3.0, delta=1e-5, queries=30, answers=9, threshold=9).guarantee,
    "gate": lambda: Gate(epsilon=4.0, delta=1e-5, refusals=1).guarantee,
    "confirm": lambda: Confirm(epsilon=4.0, delta=1e-5, refusals=1).guarantee,
    "fit": _fitted,
    "plan": lambda: planned(60000, 4, epsilon=2, delta=1e-4, error=["0.05"]).comparisons[0].guarantee,
    "ledger": _ledger,
    "identification": lambda: identification_bound(_linear(), _inputs(8), Gaussian(0.7), draws=2000),
    "gallery": lambda: bayes_bound(_linear(), Gallery(_inputs(8)), Gaussian(0.7), draws=2000).guarantee,
    "posterior": lambda: (
        posterior_bound(_linear(), Jittered(_inputs(20), jitter=0.5), Gaussian(0.7), steps=4, inputs=200).guarantee
    ),
}


@functools.cache
def guarantee(name):
    return MADE[name]()


def statement(name):
    """A fresh certificate of one claim, everything revealed."""
    return certified([guarantee(name)], title=name, reveal=True).statement


def exact(value):
    return Fraction(float.fromhex(value)) if isinstance(value, str) and "0x" in value else Fraction(value)


def real(value):
    return float(exact(value))


def proven(claim):
    """What Tacit's own theorems make of a claim's inputs: the bound on its value, or None if they prove nothing."""
    inputs = claim["inputs"]
    try:
        return _PROVEN[claim["rule"]](inputs, claim)
    except (TacitError, ValueError, OverflowError):
        return None


def _of_cells(inputs, claim):
    cells = np.array(inputs["cells"])
    secret = np.repeat([True, False], len(cells))
    outputs = np.tile(np.arange(len(cells)), 2)
    keep = cells.T.ravel() > 0
    columns = secret[keep], outputs[keep], cells.T.ravel()[keep]
    with contextlib.ExitStack() as stated:  # the draw and the λ are those of the claim
        stated.enter_context(mock.patch("tacit.audit.limits.seed_of", return_value=inputs["seed"] or 0))
        rate = real(inputs["rate"]) if inputs["rate"] else 0.0
        if rate > 0:
            stated.enter_context(mock.patch("tacit.theory.pairs.Pairs.rate", return_value=rate))
        found = _certified(*columns, inputs, claim)
    return found.guarantee_of(inputs["reading"]).value


def _certified(secret, outputs, weights, inputs, claim):
    return certify(
        secret,
        outputs,
        weights=weights,
        loss=inputs["loss"],
        sampling=inputs["sampling"],
        failure_probability=real(claim["failure_probability"]),
        method="discrete",
        form="closed" if inputs["loss"] == "joint" and inputs["seed"] is None else "sharp",
    )


def _spent(part):
    epsilon = real(part["epsilon"])
    kind = part["mechanism"]
    if kind == "laplace":
        return 0.0 if exact(part["sensitivity"]) / exact(part["scale"]) <= exact(part["epsilon"]) else 1.0
    if kind == "labels found":
        fine = part["changed"] / exact(part["scale"]) <= exact(part["epsilon"])
        chance = accounting.lone_label_chance(part["threshold"], scale=real(part["scale"]))
        return part["changed"] * chance if fine else 1.0
    if kind in ("gnmax", "gnmax labels"):
        tests = {"tests": part["tests"], "test_sigma": real(part["test_sigma"])} if part["tests"] else {}
        if kind == "gnmax labels":
            tests |= {"order": real(part["order"])}
            return label_moments.labels_delta(epsilon, sigma=real(part["sigma"]), answers=part["answers"], **tests)
        return accounting.gnmax_delta(epsilon, sigma=real(part["sigma"]), answers=part["answers"], **tests)
    if kind in ("gate", "confirm"):
        values = np.array([[real(value) for value in level] for level in part["levels"]])
        found = gate.Certificate(
            nodes=np.array([real(y) for y in part["nodes"]]),
            values=np.vstack([np.zeros(values.shape[1]), values]).T.copy(),
            corners=tuple((high, low) for high, low in part["corners"]),
        )
        delta = gate.gate_delta if kind == "gate" else gate.confirm_delta
        return delta(epsilon, table=part["table"], refusals=part["refusals"], certificate=found)
    if kind == "adaptive threshold":
        return _adaptive(epsilon, part)
    options = {"scale": real(part["scale"]), "threshold": part["threshold"]}
    if kind == "sparse vector":
        return accounting.sparse_vector_delta(epsilon, refusals=part["refusals"], **options)
    if kind == "open threshold":
        return open_threshold.open_threshold_delta(epsilon, refusals=part["refusals"], **options)
    return accounting.stable_release_delta(epsilon, queries=part["queries"], **options)


def _adaptive(epsilon, part):
    """1 where a price or a chance of labels is not what it must be."""
    order, labels_chance, budget = real(part["order"]), real(part["labels"]), part["budget"]
    last = real(part["last_scale"])
    if last < adaptive_threshold.least_scale(order):
        return 1.0
    if 2 * open_threshold.telling_chance(part["last_threshold"], scale=last) > labels_chance:
        return 1.0
    for scale, price, votes in zip(map(real, part["scales"]), part["prices"], part["thresholds"], strict=True):
        if scale <= adaptive_threshold.least_scale(order):
            return 1.0
        share = min(1.0, price / budget)
        if 2 * open_threshold.telling_chance(votes, scale=scale) > labels_chance * share * (1 + 1e-11):
            return 1.0
        if price < adaptive_threshold.refusal_price(scale, order=order) * 2**40 * (1 - 1e-9):
            return 1.0
    paid = budget / 2**40
    return adaptive_threshold.adaptive_threshold_delta(epsilon, order=order, budget=paid, labels=labels_chance)


def _of_parts(total):
    def found(inputs, _):
        parts = inputs["parts"]
        for part in parts:
            if _spent(part) > real(part["delta"]) * (1 + 1e-9):
                return None
        if total(exact(part["delta"]) for part in parts) > exact(inputs["delta"]):
            return None
        return float(total(exact(part["epsilon"]) for part in parts))

    return found


def _of_entries(inputs, _):
    if sum(exact(entry["delta"]) for entry in inputs["entries"]) > exact(inputs["delta"]):
        return None
    if {entry["about"] for entry in inputs["entries"]} != {inputs["about"]}:
        return None
    return float(sum(exact(entry["epsilon"]) for entry in inputs["entries"]))


def _lower(inputs, alpha):
    values = np.array([real(value) for value in inputs["values"]])
    return max(
        confidence.sampled_mean_lower(values, failure_probability=alpha / 2),
        confidence.bounded_mean_lower(float(values.mean()), count=len(values), failure_probability=alpha / 2),
    )


def _of_names(inputs, _):
    values = [(1 - exact(value)) for value in inputs["values"]]
    lower = _lower({"values": values}, real(inputs["failure_probability"]))
    return 1 - lower + float(divergences.gaussian_total_variation(real(inputs["distance"])))


def _of_gallery(inputs, _):
    lower = _lower(inputs, real(inputs["failure_probability"]))
    lost = 4 * float(divergences.gaussian_total_variation(real(inputs["distance"])))
    return (lower - lost) * real(inputs["most"]) / inputs["coordinates"] / real(inputs["variance"])


def _of_stars(inputs, _):
    values = np.array([real(value) for value in inputs["values"]])
    lower = confidence.sampled_mean_lower(values, failure_probability=real(inputs["failure_probability"]))
    paid = 4 * real(inputs["radius"]) ** 2 * real(inputs["release_variation"])
    return ((lower - real(inputs["chain_variation"])) * real(inputs["most"]) - paid) / real(inputs["variance"])


_PROVEN = {
    "audit": _of_cells,
    "private answers": _of_parts(sum),
    "one of several mechanisms": _of_parts(max),
    "ledger": _of_entries,
    "identification": _of_names,
    "gallery error": _of_gallery,
    "posterior error": _of_stars,
}
