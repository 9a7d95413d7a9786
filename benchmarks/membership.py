"""Attacks on membership beside ML Privacy Meter's own code, on the same models of Location-30.

    python benchmarks/membership.py bangkok --peer ml_privacy_meter

`bangkok` is the file of dataset_location.tgz (privacytrustlab/datasets), `ml_privacy_meter` a checkout of
privacytrustlab/ml_privacy_meter (e384af8), whose `attacks.py` is run as it stands, with the offline coefficient that it
tunes itself. Models are trained in pairs on complementary halves, as it expects; every attack sees the same ones.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import platform
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from tacit.audit.record_attacks import ATTACKS
from tacit.audit.retraining import Retrained

RATES = (0.001, 0.01)
KINDS = {
    "forest of 100 trees": lambda seed: RandomForestClassifier(100, random_state=seed),
    "network, 128 neurons": lambda seed: MLPClassifier((128,), max_iter=60, alpha=0.0, random_state=seed),
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path)
    options.add_argument("--peer", type=Path, required=True)
    options.add_argument("--references", type=int, default=16, help="models without the record, and as many with it")
    options.add_argument("--targets", type=int, default=6)
    options.add_argument("--population", type=int, default=1010, help="records that no model is trained on")
    given = options.parse_args()
    lines = given.data.read_text().splitlines()
    table = np.array([line.replace('"', "").split(",") for line in lines], dtype=np.float32)
    order = np.random.default_rng(0).permutation(len(table))
    labels, inputs = table[order, 0].astype(np.int64) - 1, table[order, 1:]
    peer = _attacks_of(given.peer)
    rows = []
    for kind in KINDS:
        rows += _compared(kind, inputs, labels, peer, given)
    print(json.dumps({"python": platform.python_version(), "rows": rows}, indent=2))


def _attacks_of(folder: Path) -> Any:
    made = importlib.util.spec_from_file_location("peer_attacks", folder / "attacks.py")
    if made is None or made.loader is None:
        raise SystemExit(f"no attacks.py in {folder}")
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module


def _compared(kind: str, inputs: Any, labels: Any, peer: Any, given: Any) -> list[dict[str, Any]]:
    pool = len(labels) - given.population
    models = 2 * (given.references + 1)
    rng = np.random.default_rng(1)
    inside = np.empty((models, pool), dtype=bool)
    for number in range(0, models, 2):  # pairs of complementary halves
        half = rng.permutation(pool) < pool // 2
        inside[number], inside[number + 1] = half, ~half
    said = joblib.Parallel(n_jobs=-1)(
        joblib.delayed(_answers)(kind, number, inputs, labels, inside[number]) for number in range(models)
    )
    chances = np.array([own for own, _ in said])
    predicted = np.array([top for _, top in said])
    everyone = Retrained(
        inside=inside,
        chances=chances[:, :pool],
        predicted=predicted[:, :pool],
        confidence=chances[:, :pool],
        labels=labels[:pool],
    )
    found: dict[str, list[dict[str, float]]] = {}
    for target in range(given.targets):
        rest = np.arange(models) // 2 != target // 2  # neither the target nor its complement
        one = np.arange(models) == target
        for name, (_, score) in ATTACKS.items():
            scores = score(everyone.part(rest), everyone.part(one))[0]
            found.setdefault(f"tacit: {name}", []).append(_measured(scores, inside[target]))
        signals, memberships = chances[:, :pool].T, inside.T
        outside = chances[:, pool:].T
        quiet = logging.getLogger("peer")
        between, _, _ = peer.tune_offline_a(target, signals, outside, memberships, quiet)
        scores = peer.run_rmia(target, signals, outside, memberships, given.references, between)
        found.setdefault("ML Privacy Meter: rmia", []).append(_measured(scores, inside[target]))
    return [
        {"model": kind, "attack": name, **{key: round(float(np.mean([m[key] for m in made])), 4) for key in made[0]}}
        for name, made in found.items()
    ]


def _answers(kind: str, seed: int, inputs: Any, labels: Any, inside: Any) -> tuple[Any, Any]:
    chosen = np.flatnonzero(inside)
    model = KINDS[kind](seed).fit(inputs[chosen], labels[chosen])
    chances = np.zeros((len(labels), int(labels.max()) + 1))
    chances[:, model.classes_] = model.predict_proba(inputs)
    return chances[np.arange(len(labels)), labels], chances.argmax(axis=1)


def _measured(scores: Any, inside: Any) -> dict[str, float]:
    """True positive rates and the area under the curve, with tied scores together."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, True)
    true, false = (np.concatenate([[0.0], np.cumsum(side[order])[last] / side.sum()]) for side in (inside, ~inside))
    found = {f"TPR at FPR {rate:g}": float(true[false <= rate].max()) for rate in RATES}
    return {**found, "AUC": float(np.trapezoid(true, false))}


if __name__ == "__main__":
    main()
