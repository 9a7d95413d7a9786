"""The options of a run, and the checks that need no file."""

from __future__ import annotations

import dataclasses
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ...core import validate
from ...core.errors import InputError
from ..mechanisms.registry import KINDS

OTHERS = (
    "set some aside, or leave it out; --allow-overlap takes them as they are, and private records among them are then "
    "not protected"
)
"""The remedy for private records in a file that is not private."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """The options of `learn_files`, with files as paths."""

    private: Path
    label: str
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
    expected: float
    classes: str | None
    ids: str | None
    proposer: Path | None
    ledger: str | None
    ledger_url_file: Path | None
    new_ledger: bool
    anchor: Path | None
    new_anchor: bool
    engine: str
    allow_overlap: bool
    resume: bool

    @property
    def others(self) -> list[tuple[str, Path]]:
        """The files beside PRIVATE that were named, by their options."""
        named = (("--public", self.public), ("--test", self.test), ("--proposer", self.proposer))
        return [(option, path) for option, path in named if path is not None]


def checked(task: Task) -> Task:
    """The task, after the checks that need no file, so that nothing is read or made in vain."""
    epsilon = validate.budget("--epsilon", task.epsilon, at_least=1e-9, at_most=1e4, remedy="use about 1")
    delta = validate.budget(
        "--delta", task.delta, above=0, below=1, remedy="use about 1/n², e.g. 1e-10 for 100000 records"
    )
    validate.choice("--mechanism", task.mechanism, ("auto", *KINDS), remedy="use auto")
    validate.number(
        "--expected", task.expected, above=0.5, at_most=1, remedy="give the share of teachers that are right"
    )
    for name, value in (("--teachers", task.teachers), ("--refusals", task.refusals)):
        if value is not None:
            validate.whole(name, value, at_least=1, remedy="leave it out to have it chosen")
    for name, text in (("--queries", task.queries), ("--classes", task.classes)):
        if not isinstance(text, str | None):
            raise InputError(
                name, text, requirement="must be text", remedy="write it as in the command, e.g. '200' or 'a,b'"
            )
    if task.queries is not None and task.queries != "all" and not re.fullmatch(r"0*[1-9]\d{0,15}", task.queries):
        raise InputError("--queries", task.queries, requirement="must be 'all' or a number ≥ 1", remedy="leave it out")
    if task.public is None and not task.labels_only:
        raise InputError(
            "--public",
            None,
            requirement="must name a file of public records, unless --labels-only says that only labels are private",
            remedy="give one, or add --labels-only: then private records are published, without their own labels",
        )
    if task.public is not None and task.labels_only:
        raise InputError(
            "--labels-only",
            f"--public {task.public}",
            requirement="must not be combined with --public",
            remedy="keep --public to protect whole records; keep --labels-only to protect labels alone",
        )
    for name, path in task.others:
        if os.path.realpath(path) == os.path.realpath(task.private):  # of links in circles, too
            raise InputError(
                name, str(path), requirement="must hold other records than PRIVATE", remedy=OTHERS.partition(";")[0]
            )
    for name, path in (("PRIVATE", task.private), *task.others):
        if os.path.realpath(path.parent) in [os.path.realpath(task.out / room) for room in ("publish", "private")]:
            raise InputError(
                name,
                str(path),
                requirement="must not lie in a folder that this run writes to, where it could be overwritten",
                remedy="copy it elsewhere, or choose another --out",
            )
    if task.mechanism != "auto" and KINDS[task.mechanism].proposed != (task.proposer is not None):
        raise InputError(
            "--proposer",
            None if task.proposer is None else str(task.proposer),
            requirement="must be given for --mechanism confirm, and for no other but auto",
            remedy="name labelled records that may be known, or choose gate",
        )
    if (task.out / "private" / "task.json").exists() and not task.resume:
        raise InputError(
            "--out", str(task.out), requirement="must be new without --resume", remedy="add --resume to go on there"
        )
    return dataclasses.replace(task, epsilon=epsilon, delta=delta)
