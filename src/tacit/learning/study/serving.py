"""What `tacit serve` needs of a run of `tacit learn`: the rule for columns, the classes, and the teachers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import InputError
from ...core.guarantee import Guarantee
from ...runtime import private_files, run_folder
from ..classifier import PrivateClassifier
from ..columns import Columns
from ..mechanisms import Mechanism
from ..moments import SUMMED
from ..nearby import VOTERS
from ..release import Release
from ..shares import Shares
from ..summed_fit import TAUGHT
from ..teachers import Teachers
from .inputs import Records
from .options import Task

_FILE = "serving.json"


@dataclass(frozen=True, kw_only=True)
class Served:
    """Teachers that can be asked, and what is known about them.

    Attributes
    ----------
    folder
        The folder of the run.
    label
        The column that was learned.
    classes
        All labels, in the order of the counts.
    columns
        The rule that turns rows of a table into numbers.
    teachers
        The teachers.
    neighbours
        In what two data sets differ that guarantees of the run compare.
    ledger
        The origin of the ledger that has paid for the run.
    """

    folder: Path
    label: str
    classes: list[Any]
    columns: Columns
    teachers: Teachers
    neighbours: str
    ledger: str
    _facts: dict[str, bool]

    def guarantee_of(self, mechanism: Mechanism) -> Guarantee:
        """What is proven about answers of these teachers by this mechanism, together with what they rest on."""
        shares = Shares(epsilon=mechanism.epsilon, delta=mechanism.delta, mechanism=mechanism)
        release = Release(shares=shares, compared=self.neighbours, proposed=False, transformed=False, **self._facts)
        return release.guarantee_of(
            mechanism, council={"teachers": self.teachers.n_teachers}, estimate=None, resumed=False
        )


def keep(task: Task, data: Records, model: PrivateClassifier, folder: Path) -> None:
    """Write what `load` reads, once the teachers are trained."""
    rule = data.columns
    facts = {"labels_only": task.public is None, "overlapping": task.allow_overlap, "named": data.classes is not None}
    run_folder.record(
        folder / _FILE,
        lambda: {
            "label": task.label,
            "classes": model.classes_.tolist(),
            "names": rule.names_,
            "numeric": rule.numeric_,
            "categories": rule.categories_,
            "encoded": sorted(rule.encoded_),
            "facts": facts,
        },
    )


def load(folder: Path | str) -> Served:
    """Read the teachers of a run of `tacit learn`, without its records.

    Parameters
    ----------
    folder
        The folder that the run was given as `out`.

    Returns
    -------
    The teachers and what is known about them.
    """
    place = Path(folder) / "private"
    if (place / VOTERS).is_dir() or (place / SUMMED).is_dir():
        raise InputError(
            "folder",
            str(folder),
            requirement="must hold teachers, and this run has none: private records voted themselves, or were summed "
            "up",
            remedy="publish its student, or learn again with a mechanism that asks teachers",
        )
    if (place / TAUGHT).is_dir():
        raise InputError(
            "folder",
            str(folder),
            requirement="must hold teachers of classes: those of a run that learned numbers or several labels are not "
            "kept",
            remedy="publish its student",
        )
    if not (place / _FILE).exists():
        raise InputError(
            "folder",
            str(folder),
            requirement="must hold the teachers of a finished run of tacit learn",
            remedy="name its folder; a run of an earlier version writes what is missing when it is resumed",
        )
    private_files.closed(place)
    found, task = run_folder.record(place / _FILE, dict), run_folder.task(place)
    if found.get("encoded"):
        raise InputError(
            "folder",
            str(folder),
            requirement="must be of a run that encodes no texts or images, which a service does not",
            remedy="publish its student, or learn again without these columns",
        )
    rule = Columns()
    rule.names_ = found["names"]
    rule.numeric_ = {name: tuple(numbers) for name, numbers in found["numeric"].items()}
    rule.categories_ = found["categories"]
    classes = found["classes"]
    return Served(
        folder=Path(folder),
        label=found["label"],
        classes=classes,
        columns=rule,
        teachers=Teachers.load(place / "teachers", classes=range(len(classes))),
        neighbours=task["neighbours"],
        ledger=task["ledger"],
        _facts=found["facts"],
    )
