"""The options of a run, and the checks that need no file."""

from __future__ import annotations

import dataclasses
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ...core import validate
from ...core.errors import InputError
from ..encoders import GRADIENTS
from ..mechanisms.registry import KINDS, MOMENTS, NAMES, WITHOUT_TEACHERS
from ..summed_fit import finite_range

OTHERS = (
    "set some aside, or leave it out; `allow_overlap` takes them as they are, and private records among them are then "
    "not protected"
)
"""The remedy for private records in a file that is not private."""

LEARNER = "sklearn.linear_model:LogisticRegression"
"""What teachers are, unless somebody says otherwise."""
REGRESSOR = "sklearn.linear_model:Ridge"
"""What teachers are if they answer with numbers."""
_USUAL = {
    "learner": LEARNER,
    "settings": (),
    "teacher_accuracy": None,
    "device": "auto",
    "engine": "local",
}


@dataclass(frozen=True, kw_only=True)
class Task:
    """The options of `learn_files`, with files as paths."""

    private: Path
    labels: tuple[str, ...]
    label_range: tuple[float, float] | None
    out: Path
    epsilon: float
    delta: float
    public: Path | None
    labels_only: bool
    test: Path | None
    learner: str
    settings: tuple[str, ...]
    student: str | None
    student_settings: tuple[str, ...]
    teachers: int | None
    mechanism: str
    queries: str | None
    refusals: int | None
    teacher_accuracy: float | None
    classes: str | None
    ids: str | None
    text: tuple[str, ...]
    text_encoder: Path | None
    image: tuple[str, ...]
    image_encoder: str
    image_weights: Path | None
    labelled_public: Path | None
    ledger: str | None
    ledger_url_file: Path | None
    new_ledger: bool
    budget_epsilon: float | None
    budget_delta: float | None
    anchor: Path | None
    new_anchor: bool
    device: str
    engine: str
    allow_overlap: bool
    resume: bool

    @property
    def label(self) -> str:
        """The column to learn, or the first of several."""
        return self.labels[0]

    @property
    def summed(self) -> bool:
        """Whether teachers answer with numbers, or to several labels, and sums of their answers are released."""
        return self.label_range is not None or len(self.labels) > 1

    @property
    def others(self) -> list[tuple[str, Path]]:
        """The files beside PRIVATE that were named, by their options."""
        named = (("public", self.public), ("test", self.test), ("labelled_public", self.labelled_public))
        return [(option, path) for option, path in named if path is not None]


def checked(task: Task) -> Task:
    """The task, after the checks that need no file, so that nothing is read or made in vain."""
    epsilon = validate.budget("epsilon", task.epsilon, at_least=1e-9, at_most=1e4, remedy="use about 1")
    delta = validate.budget(
        "delta", task.delta, above=0, below=1, remedy="use about 1/n², e.g. 1e-10 for 100000 records"
    )
    for name, whole, cost in (("epsilon", task.budget_epsilon, epsilon), ("delta", task.budget_delta, delta)):
        if whole is not None and not validate.budget(f"budget_{name}", whole, above=0, remedy="leave it out") >= cost:
            raise InputError(
                f"budget_{name}",
                whole,
                requirement=f"must cover this run, whose {name} is {cost:g}",
                remedy="leave it out, or give the sum of all that is to be paid from the ledger",
            )
    _check_labels(task)
    validate.choice("mechanism", task.mechanism, NAMES, remedy="use auto")
    validate.device("device", task.device)
    for name, lone, other, given in (
        ("student_settings", task.student_settings, "student", task.student),
        ("new_anchor", task.new_anchor, "anchor", task.anchor),
        ("text_encoder", task.text_encoder, "text", task.text or None),
        ("image_encoder", task.image_encoder != GRADIENTS and task.image_encoder, "image", task.image or None),
        ("image_weights", task.image_weights, "image", task.image or None),
    ):
        if lone and given is None:
            raise InputError(
                name,
                str(lone) if isinstance(lone, Path) else lone,
                requirement=f"must come with `{other}`",
                remedy=f"add `{other}`, or leave it out",
            )
    encoded = [*task.text, *task.image]
    for column in encoded:
        if encoded.count(column) > 1 or column in (task.label, task.ids):
            raise InputError(
                "image" if column in task.image else "text",
                column,
                requirement="must name a column once, and neither the label nor whose records are",
                remedy="name another column",
            )
    if task.image and task.public is None and task.labels_only:
        raise InputError(
            "image",
            task.image[0],
            requirement="must not be combined with `labels_only`, which publishes half of the private table: the names "
            "of files and folders often tell labels",
            remedy="give public records with `public`",
        )
    if task.teacher_accuracy is not None:
        validate.number(
            "teacher_accuracy", task.teacher_accuracy, above=0.5, at_most=1, remedy="give a share such as 0.8"
        )
    for name, value in (("teachers", task.teachers), ("refusals", task.refusals)):
        if value is not None:
            validate.whole(name, value, at_least=1, remedy="leave it out to have it chosen")
    for name, text in (("queries", task.queries), ("classes", task.classes)):
        if not isinstance(text, str | None):
            raise InputError(name, text, requirement="must be text", remedy="write for example '200' or 'a,b'")
    if task.queries is not None and task.queries != "all" and not re.fullmatch(r"0*[1-9]\d{0,15}", task.queries):
        raise InputError("queries", task.queries, requirement="must be 'all' or a number ≥ 1", remedy="leave it out")
    if task.public is None and not task.labels_only:
        raise InputError(
            "public",
            None,
            requirement="must name a file of public records, unless `labels_only` says that only labels are private",
            remedy="give one, or add `labels_only`: then private records are published, without their own labels",
        )
    if task.public is not None and task.labels_only:
        raise InputError(
            "labels_only",
            str(task.public),
            requirement="must not be combined with `public`",
            remedy="keep `public` to protect whole records; keep `labels_only` to protect labels alone",
        )
    for name, path in task.others:
        if os.path.realpath(path) == os.path.realpath(task.private):  # of links in circles, too
            raise InputError(
                name, str(path), requirement="must hold other records than `private`", remedy=OTHERS.partition(";")[0]
            )
    for name, path in (("private", task.private), *task.others):
        if os.path.realpath(path.parent) in [os.path.realpath(task.out / room) for room in ("publish", "private")]:
            raise InputError(
                name,
                str(path),
                requirement="must not lie in a folder that this run writes to, where it could be overwritten",
                remedy="copy it elsewhere, or choose another `out`",
            )
    if task.mechanism in WITHOUT_TEACHERS:
        refused: dict[str, object] = {"teachers": task.teachers, "refusals": task.refusals}
        why = "which has no teachers"
        if task.mechanism == MOMENTS:
            refused |= {name: getattr(task, name) for name in ("queries", "student")}
            refused |= {name: getattr(task, name) for name, usual in _USUAL.items() if getattr(task, name) != usual}
            why = "which trains nothing but one linear classifier and asks nobody"
        for name, setting in refused.items():
            if setting is not None:
                raise InputError(
                    name,
                    setting,
                    requirement=f"must be left out for the mechanism {task.mechanism}, {why}",
                    remedy="leave it out, or choose a mechanism that asks teachers",
                )
    proposed = task.mechanism in KINDS and KINDS[task.mechanism].proposed
    if task.mechanism != "auto" and proposed != (task.labelled_public is not None):
        raise InputError(
            "labelled_public",
            None if task.labelled_public is None else str(task.labelled_public),
            requirement="must be given for the mechanism confirm, and otherwise only for auto",
            remedy="name a file of labelled records that are not private, or choose gate",
        )
    if (task.out / "private" / "task.json").exists() and not task.resume:
        raise InputError(
            "out", str(task.out), requirement="must be new without `resume`", remedy="add `resume` to continue there"
        )
    return dataclasses.replace(task, epsilon=epsilon, delta=delta)


def _check_labels(task: Task) -> None:
    """Refuse columns without a meaning, and what does not go with numbers or several labels."""
    if not task.labels or len(set(task.labels)) < len(task.labels) or task.ids in task.labels:
        raise InputError(
            "label",
            ", ".join(task.labels) or None,
            requirement="must name one column or several different ones, none of which is that of `ids`",
            remedy="name each column once",
        )
    if not task.summed:
        return
    if task.label_range is not None:
        finite_range("label_range", task.label_range)
        if len(task.labels) > 1:
            raise InputError(
                "label_range",
                task.label_range,
                requirement="must come with one `label`: several columns are yes or no each",
                remedy="learn each column of numbers by a run of its own",
            )
    usual = {
        "labels_only": False,
        "mechanism": "auto",
        "refusals": None,
        "classes": None,
        "labelled_public": None,
        "teacher_accuracy": None,
    }
    for name, unset in usual.items():
        value = getattr(task, name)
        if value != unset:
            raise InputError(
                name,
                str(value) if isinstance(value, Path) else value,
                requirement="must be left out where numbers or several labels are learned: the sums of teachers' "
                "answers to all public records are released, with noise",
                remedy="leave it out, or learn one column of classes",
            )
