"""Attacks on membership beside the own code of ML Privacy Meter and LeakPro, on the same models of Location-30.

    python benchmarks/membership.py bangkok --peer ml_privacy_meter --leakpro LeakPro

`bangkok` is the file of dataset_location.tgz (privacytrustlab/datasets), `ml_privacy_meter` a checkout of
privacytrustlab/ml_privacy_meter (e384af8), whose `attacks.py` is run as it stands, with the offline coefficient that it
tunes itself, and `LeakPro` one of aidotse/LeakPro (c47752fa, version 0.1.0), whose `lira.py` and `rmia.py` are run as
they stand, with their default settings; what they import to train models, tune and store results is replaced by empty
modules. Models are trained in pairs on complementary halves, as both expect; every attack sees the same ones.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import json
import logging
import platform
import sys
import types
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
    options.add_argument("--leakpro", type=Path, required=True)
    options.add_argument("--references", type=int, default=16, help="models without the record, and as many with it")
    options.add_argument("--targets", type=int, default=6)
    options.add_argument("--population", type=int, default=1010, help="records that no model is trained on")
    given = options.parse_args()
    lines = given.data.read_text().splitlines()
    table = np.array([line.replace('"', "").split(",") for line in lines], dtype=np.float32)
    order = np.random.default_rng(0).permutation(len(table))
    labels, inputs = table[order, 0].astype(np.int64) - 1, table[order, 1:]
    peer, leakpro = _attacks_of(given.peer), _LeakPro(given.leakpro)
    rows = []
    for kind in KINDS:
        rows += _compared(kind, inputs, labels, peer, leakpro, given)
    print(json.dumps({"python": platform.python_version(), "rows": rows}, indent=2))


def _attacks_of(folder: Path) -> Any:
    made = importlib.util.spec_from_file_location("peer_attacks", folder / "attacks.py")
    if made is None or made.loader is None:
        raise SystemExit(f"no attacks.py in {folder}")
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module


class _Empty(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules of nothing but empty classes, for what LeakPro imports and its attacks do not use."""

    KEPT = ("leakpro.attacks.mia_attacks.lira", "leakpro.attacks.mia_attacks.rmia", "leakpro.attacks.utils.utils")
    FOLDERS = ("leakpro.attacks", "leakpro.attacks.mia_attacks", "leakpro.attacks.utils", "leakpro.utils")

    def find_spec(self, fullname: str, *_: Any) -> Any:
        used = fullname in (*self.KEPT, *self.FOLDERS) or fullname.startswith("leakpro.utils.")
        if fullname.startswith("leakpro.") and not used:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        made = types.ModuleType(spec.name)
        made.__dict__["__getattr__"] = _empty_class
        return made

    def exec_module(self, module: Any) -> None:
        pass


def _empty_class(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})


class _LeakPro:
    """Its attacks, on models that were trained and asked already."""

    def __init__(self, folder: Path) -> None:
        root = types.ModuleType("leakpro")
        root.__path__ = [str(folder / "leakpro")]
        sys.modules["leakpro"] = root
        sys.meta_path.insert(0, _Empty())
        lira, rmia = (importlib.import_module(f"leakpro.attacks.mia_attacks.{name}") for name in ("lira", "rmia"))
        for module in (lira, rmia):
            quiet = {"tqdm": lambda values, **_: values}
            vars(module).update(MIAResult=types.SimpleNamespace(from_full_scores=lambda **_: None), **quiet)
        self.lira, self.rmia = lira.AttackLiRA, rmia.AttackRMIA

    def scores(self, name: str, target: Any, shadows: Any, inside: Any, labels: Any, *, online: bool) -> Any:
        """Scores of the audited records, from logits of the target (records × classes) and of the shadow models."""
        attack = object.__new__(getattr(self, name))
        settings = attack.AttackConfig(num_shadow_models=len(shadows), online=online)
        for key, value in settings.model_dump().items():
            setattr(attack, key, value)
        attack.configs = settings
        everyone = np.arange(len(labels))
        attack.audit_dataset = {"data": everyone, "in_members": everyone, "out_members": everyone[:0]}
        attack.out_indices = ~inside
        if name == "lira":
            attack.fix_var_threshold = 32  # as its prepare_attack sets it
            attack.shadow_models_logits = np.array([attack.rescale_logits(one, labels) for one in shadows])
            attack.target_logits = attack.rescale_logits(target, labels)
        else:
            attack.load_for_optuna, attack.epsilon = True, 1e-6  # logits are there already
            attack.attack_data_indices, attack.ground_truth_indices = everyone, labels
            attack.logits_theta, attack.logits_shadow_models = target, shadows
            attack.shadow_models = [None] * len(shadows)
            attack.handler = types.SimpleNamespace(
                train_indices=everyone, test_indices=everyone[:0], get_labels=labels.__getitem__, target_model=None
            )
            np.random.seed(0)  # noqa: NPY002 — it draws by the old generator
            attack.prepare_attack()
        attack.run_attack()
        return attack.in_member_signals[:, 0]


def _compared(kind: str, inputs: Any, labels: Any, peer: Any, leakpro: Any, given: Any) -> list[dict[str, Any]]:
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
    everything = np.array(said)
    chances = everything[:, np.arange(len(labels)), labels]
    roots = np.sqrt(everything[:, :pool])
    with np.errstate(divide="ignore"):
        logits = np.log(everything[:, :pool])
    everyone = Retrained(
        inside=inside,
        chances=chances[:, :pool],
        predicted=everything[:, :pool].argmax(axis=2),
        largest=chances[:, :pool],
        labels=labels[:pool],
        softened=roots[:, np.arange(pool), labels[:pool]] / roots.sum(axis=2),
        inputs=inputs[:pool].astype(np.float64),
    )
    found: dict[str, list[dict[str, float]]] = {}
    for target in range(given.targets):
        rest = np.arange(models) // 2 != target // 2  # neither the target nor its complement
        one = np.arange(models) == target
        for name, (_, score) in ATTACKS.items():
            scores = score(everyone.part(rest), everyone.part(one))[0]
            left = ~np.isnan(scores)  # QMIA is told about the others
            found.setdefault(f"tacit: {name}", []).append(_measured(scores[left], inside[target][left]))
        for name, online in (("lira", True), ("lira", False), ("rmia", True), ("rmia", False)):
            shadows = list(logits[rest])
            scores = leakpro.scores(name, logits[target], shadows, inside[rest], labels[:pool], online=online)
            words = f"LeakPro: {name}, {'online' if online else 'offline'}"
            found.setdefault(words, []).append(_measured(scores, inside[target]))
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


def _answers(kind: str, seed: int, inputs: Any, labels: Any, inside: Any) -> Any:
    chosen = np.flatnonzero(inside)
    model = KINDS[kind](seed).fit(inputs[chosen], labels[chosen])
    chances = np.zeros((len(labels), int(labels.max()) + 1))
    chances[:, model.classes_] = model.predict_proba(inputs)
    return chances


def _measured(scores: Any, inside: Any) -> dict[str, float]:
    """True positive rates and the area under the curve, with tied scores together."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, True)
    true, false = (np.concatenate([[0.0], np.cumsum(side[order])[last] / side.sum()]) for side in (inside, ~inside))
    found = {f"TPR at FPR {rate:g}": float(true[false <= rate].max()) for rate in RATES}
    return {**found, "AUC": float(np.trapezoid(true, false))}


if __name__ == "__main__":
    main()
