"""Audits of several outputs that share one failure probability, each kept in a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from ..audit import Audit, ImpliedByDP, attempts, certify
from ..runtime import run_folder

CEILING, DELTA = 0.1, 0.05
RATES = (np.linspace(0, 1, 101) ** 2).tolist()
"""False positive rates at which the region of a certificate is stored."""

Array = NDArray[Any]
Advance = Callable[[str], None]
Found = dict[str, Any]
"""What is kept of one audit."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to run; the fields are the options of the command line.

    Attributes
    ----------
    experiment
        "adult" or "mnist".
    out, data
        The output folder and the data folder.
    records
        How many people are audited, or how many members and as many others.
    rows
        How many rows are drawn from these for each audit of mnist.
    shadows
        How many shadow models are trained for each model of mnist.
    seed
        For draws, training and attacks.
    resume
        Continue in a folder that an earlier run left behind.
    """

    experiment: str
    out: Path
    data: Path | None = None
    records: int | None = None
    rows: int = 200_000
    shadows: int = 16
    seed: int = 0
    resume: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One audit: secrets and outputs, and what differential privacy implies for them if the model has any."""

    model: str
    secret: str
    output: str
    secrets: Array
    outputs: Array
    noise: float | None = None
    private: ImpliedByDP | None = None

    @property
    def file(self) -> str:
        """The name of the file that keeps it."""
        name = re.sub(r"[^A-Za-z0-9]+", "-", f"{self.model} {self.secret} {self.output}")
        return f"{name}.json"


def mark(task: Task, columns: Sequence[Array]) -> dict[str, object]:
    """Return what a folder must have been made for, to continue in it."""
    return {
        "tacit": __version__,
        "task": f"audit {task.experiment}",
        "data": run_folder.digest(
            "".join(run_folder.digest(np.ascontiguousarray(one).tobytes()) for one in columns).encode()
        ),
        "options": {name: getattr(task, name) for name in ("records", "rows", "shadows", "seed")},
    }


def audited(task: Task, cases: Sequence[Case], advance: Advance, *, attacked: Array) -> list[Found]:
    """Run every audit, or read it from its file if it is finished; all certificates hold together."""
    found = []
    for case in cases:
        advance(f"auditing {case.secret} from {case.model}: {case.output}")
        made = partial(_one, case, DELTA / len(cases), attacked, task.seed)
        found.append(run_folder.record(task.out / case.file, made))
    return found


def _one(case: Case, failure_probability: float, attacked: Array, seed: int) -> Found:
    certificate = certify(
        case.secrets,
        case.outputs,
        failure_probability=failure_probability,
        loss="joint",
        noise=case.noise,
        name=f"{case.output} of the model “{case.model}”",
        seed=seed,
    )
    tried = attempts(
        case.secrets[attacked],
        case.outputs[attacked],
        certificate=certificate,
        noise=case.noise,
        failure_probability=0.1 * failure_probability,
        seed=seed,
    )
    whole = Audit(certificate=certificate, attacks=tried, require_advantage=CEILING)
    return {
        "model": case.model,
        "secret": case.secret,
        "output": case.output,
        "low": whole.low,
        "high": whole.high,
        "verdict": whole.verdict,
        "judged": "met" if whole.met else "broken" if whole.low > CEILING else "not proven",
        "failure_probability": whole.failure_probability,
        "tpr_at_1_percent": float(certificate.tpr_at(0.01)),
        "auc": certificate.auc,
        "bits": certificate.bits,
        "epsilon_shown": max(attempt.epsilon for attempt in tried),
        "implied": None if case.private is None else case.private.advantage,
        "attack": tried[0].learner,
        "roc": {attempt.name: attempt.roc for attempt in tried},
        "region": np.asarray(certificate.tpr_at(RATES)).tolist(),
        "comparison": whole.comparison.to_dict(),
    }
