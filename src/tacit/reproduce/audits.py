"""`tacit reproduce audit adult` and `mnist`: audits of finished models.

`adult` audits what a prediction of income, or its score, tells about a person's sex and race. `mnist` audits what a
classifier's answers tell about whether an image was in its training set, for three models: one that learned its images
by heart, a private one, and the private one's learner with hardly any noise.

Secrets, outputs, noise and the ceiling were fixed before these tables were seen, on other draws of images. Scores and
finished audits are files in the output folder, so that a run that was killed continues with `resume`; no private model
is drawn twice.
"""

from __future__ import annotations

from ..core import validate
from ..report import Report
from .audit_adult import income_audits, income_steps
from .audit_cases import Advance, Task
from .audit_mnist import membership_audits, membership_steps
from .data import data_folder


def steps(task: Task) -> list[float]:
    """Return about how many seconds each step takes, on two cores: reading, models, audits."""
    return income_steps(task) if task.experiment == "adult" else membership_steps(task)


def reproduce(task: Task, *, advance: Advance = lambda _: None) -> Report:
    """Train what is to be audited, audit it, and report; continue where an earlier run stopped."""
    validate.whole("--seed", task.seed, at_least=0, remedy="use 0")
    if task.records is not None:
        validate.whole("--records", task.records, at_least=100, remedy="leave it out")
    advance("reading the data")
    study = {"adult": income_audits, "mnist": membership_audits}[
        validate.choice("EXPERIMENT", task.experiment, ("adult", "mnist"), remedy="see tacit reproduce audit --help")
    ]
    return study(task, data_folder(task.data), advance)
