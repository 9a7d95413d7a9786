"""What an audit finds in a table: its certificate, those of its slices, and what attacks reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from ...core.errors import InputError
from ..attacks import LEAST_ROWS
from ..attempt import Attempt
from ..certificate import Certificate
from ..certifying import ContinuousOutputError, certify_tally
from ..groups import grouped
from ..limits import shares
from ..menu import Menu, numbers, release_menu
from ..planning import rows_needed
from ..slices import certify_tallies
from ..tally import Tally
from ..vectors import VectorAudit, coded_name
from ..verdict import Audit, attacked
from .inputs import Read
from .options import Task


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The verdict on the whole table, the attacks on it, and the certificates of its slices."""

    audit: Audit
    tried: tuple[Attempt, ...]  # the audit's attacks
    slices: dict[Any, Certificate]
    values: int  # different outputs, bins or cells that were seen
    vectors: VectorAudit | None = None  # where the certificate is of a code of vectors
    menu: Menu | None = None  # what could be released instead

    @property
    def certificate(self) -> Certificate:
        """Of the whole table."""
        return cast("Certificate", self.audit.certificate)

    @property
    def failing(self) -> list[Any]:
        """Slices for which the ceiling, if there is one, is not proven."""
        ceiling = self.audit.require_advantage
        return [value for value, one in self.slices.items() if ceiling is not None and not one.meets(advantage=ceiling)]

    @property
    def met(self) -> bool:
        """Whether the ceiling is proven for the whole table and for every slice."""
        return (self.audit.met if self.vectors is None else self.vectors.met) and not self.failing

    @property
    def verdict(self) -> str:
        """On what is released."""
        return self.audit.verdict if self.vectors is None else self.vectors.verdict

    @cached_property
    def rows_needed(self) -> dict[float, int]:
        """For some ceilings, the least number of rows with which any table certifies them; none by a kernel."""
        allowed = self.audit.require_advantage
        certificate = self.certificate
        if certificate.by_kernel:
            return {}
        share = shares(certificate.loss, certificate.form, certificate.method)
        # From pairs of rows, no table certifies less than from total variation where nothing leaks.
        losses = {"squared": share.squared} | ({"zero-one": share.variation} if certificate.loss == "joint" else {})
        needed = {}
        for ceiling in sorted({0.02, 0.05, 0.1, 0.2} | ({allowed} if allowed else set())):
            either = []
            for loss, part in losses.items():
                try:
                    failure = part * certificate.failure_probability
                    either.append(rows_needed(ceiling, failure_probability=failure, loss=loss, values=1))
                except InputError:  # out of reach
                    continue
            if either:
                needed[ceiling] = min(either)
        return needed


def findings(task: Task, table: Read, advance: Callable[[str], None]) -> Findings:
    """Certify the table and its slices, and attack it where it has enough rows."""
    advance("certifying")
    whole = table.whole
    options: dict[str, Any] = {
        "failure_probability": task.failure_probability if task.slices is None else task.failure_probability / 2,
        "assume_max_slope": task.lipschitz,
        "positive": _positive(task, whole),
        "name": task.name if table.seen is None else coded_name(table.seen.code, task.name),
        "seed": task.seed,
    }
    whole.check_noise(noise="noise")
    try:
        certificate = certify_tally(whole, method=task.method, **options)
    except ContinuousOutputError:  # it can still be attacked
        certificate = certify_tally(whole, method="continuous", **options)
    if table.in_groups is not None:
        certificate = grouped(certificate, rows=table.in_groups)
    slices = {}
    if task.slices is not None:
        slices = certify_tallies(table.tallies, method=certificate.method, **options)
        if table.in_groups is not None:
            slices = {value: grouped(one, rows=table.in_groups) for value, one in slices.items()}
    if task.attack_rows:
        advance("attacking")
    attacks: dict[str, Any] = {"failure_probability": task.failure_probability, "seed": task.seed}
    if table.seen is None:
        tried = attacked(certificate, table.sample, noise=task.noise, **attacks)
    else:
        tried = table.seen.on_code(certificate, **attacks)
    verdict = Audit(
        certificate=certificate,
        attacks=tried,
        require_advantage=task.require_advantage,
    )
    vectors = None
    if table.seen is not None:
        vectors = VectorAudit(
            audit=verdict,
            attacks=()
            if task.release_code is not None
            else table.seen.on_vectors(whole, task.name, certificate, **attacks),
            code=table.seen.code,
            own_rows=table.own_rows,
            release_code=task.release_code is not None,
            different=table.different,
            vectors=task.name,
        )
    found = Findings(audit=verdict, tried=tried, slices=slices, values=whole.symbols, vectors=vectors)
    if not task.menu and found.met:
        return found
    return replace(found, menu=_menu(task, table, certificate.positive, advance))


def _menu(task: Task, table: Read, positive: Any, advance: Callable[[str], None]) -> Menu | None:
    """What could be released instead, certified; None for categories, and where a class has too few rows."""
    if table.menu is None or table.menu.fewest < LEAST_ROWS:
        return None
    secrets, columns = table.menu.table()
    target = None if task.target is None else columns.pop(len(columns) - 1)
    output = columns[0] if table.seen is not None or len(columns) == 1 else columns
    if numbers(list(columns.values()) if table.seen is None else list(columns[0].T)) is None:
        return None
    advance("certifying what could be released instead")
    return release_menu(
        secrets,
        output,
        target=target,
        failure_probability=task.failure_probability,
        positive=positive,
        name=task.name,
        seed=task.seed,
    )


def _positive(task: Task, tally: Tally) -> Any:
    """The value of the secret that `--positive` names, as the table has it."""
    if task.positive is None:
        return None
    for label in tally.labels:
        if isinstance(label, str):
            same = label == task.positive
        elif isinstance(label, bool):
            same = str(label).lower() == task.positive.lower()
        else:
            same = _number(task.positive) == label
        if same:
            return label
    raise InputError(
        "positive",
        task.positive,
        requirement=f"must be a value of column {task.secret!r}",
        remedy="write it as the file does",
    )


def _number(text: str) -> float | None:
    """A number from its text; whole numbers stay whole, as floats would merge those beyond 2**53."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
