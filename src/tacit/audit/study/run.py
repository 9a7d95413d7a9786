"""`audit_file`: from a table to its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ...core.deprecation import renamed
from ...report import Report
from ...report.timing import Timed
from ...runtime import tables
from ..columns import SeveralValuesError
from ..verdict import ATTACK_ROWS
from .findings import findings
from .guesses import check_secrets, guess_page, repeats, together, with_repeats
from .inputs import read
from .options import Task, check, refuse_of_two
from .pictures import pictures_of
from .repeated import audit_repeated
from .report import page
from .vectors import read_matrix, read_vectors


@renamed(delta="failure_probability", monotone="assume_one_direction", lipschitz="assume_max_slope")
def audit_file(
    table: Path | str,
    *,
    secret: str | Sequence[str],
    output: str | Sequence[str],
    code: str | None = None,
    release_code: Path | str | None = None,
    noise: float | None = None,
    noise_added: float | None = None,
    assume_one_direction: bool = False,
    assume_max_slope: float | None = None,
    positive: str | None = None,
    slices: str | None = None,
    secret_range: tuple[float, float] | None = None,
    group: str | None = None,
    failure_probability: float = 0.05,
    require_advantage: float | None = None,
    menu: bool = False,
    target: str | None = None,
    record: str | Sequence[str] | None = None,
    model: str | None = None,
    trained_with: tuple[float, float] | None = None,
    attack_rows: int = ATTACK_ROWS,
    seed: int = 0,
    pictures: bool = True,
    advance: Callable[[str], None] = lambda _: None,
) -> Report:
    """Certify a CSV or Parquet file of any size, attack it, and report both; this is what `tacit audit` does.

    `certify`, `audit` and `audit_vectors` take columns in memory and give the same numbers.

    Parameters
    ----------
    table
        The file: CSV or Parquet, or npz with arrays instead of columns.
    secret
        The column with the secret, or several, each of which is audited with an equal share of the failure
        probability. A secret of two values gets a `Certificate`, one of more values a `ClassCertificate`, and a number
        of a stated range a `NumberCertificate`.
    output
        The column that the adversary sees, or several; `*` in a name stands for any letters. Or a matrix: an array of
        an npz file, or a .npy file that has a row for each row of the table.
    code
        For vectors of many numbers: "auto", "kmeans", "tree" or "attack", and maybe the number of cells, "kmeans:64".
        A quarter of the rows fixes the code, the others certify it; whole vectors are attacked, as `audit_vectors`
        says.
    release_code
        Where to write the code, if it is what is released instead of the vectors; `load_code` reads it.
    noise
        Standard deviation of Gaussian noise that is added to the outputs at release; the table holds them without.
    noise_added
        Standard deviation of Gaussian noise that the outputs in the table hold already.
    assume_one_direction
        Assume that the probability of the secret only rises, or only falls, as the output grows.
    assume_max_slope
        Assume that the secret's mean given the output, coded ±1 and with both values equally likely, changes by at most
        this much per unit of the output.
    positive
        The value of the secret that is called positive, as text; by default the one that sorts last.
    slices
        A column, each value of which is certified separately as well; half of the failure probability is theirs.
    secret_range
        For a secret that is a number: the least and the largest number that it can be at all, known without the table.
    group
        A column: rows with the same value in it belong together. One row of each group is drawn, by a digest of
        that column, and certificates are about a random row of a random group.
    failure_probability
        The chance that any of the certificates is false. A tenth of it comes on top for the attacks' intervals, and as
        much again for all options of a menu together.
    require_advantage
        The ceiling for the advantage.
    menu
        Certify what could be released instead, also where the ceiling is met or there is none: rounding, noise, labels,
        as `release_menu` does, from 100 000 rows at most. Where a ceiling is not met, this is done anyway.
    target
        The column that the output should predict: what could be released instead is priced in its accuracy.
    record
        The column that names the record, or several, where each row is about one record and one of many models, each
        trained on a random half of the records; the secret is whether it was trained on this one. The adversary then
        holds the record, and the audit is that of `audit_records`.
    model
        With `record`: the column that names the model.
    trained_with
        With `record`: (ε, δ) that the training is stated to have, for adding or removing one record.
    attack_rows
        How many rows are attacked at most, drawn at random; 0 for no attacks.
    seed
        Of the sample, Monte Carlo and attacks.
    pictures
        Whether to draw the pictures for a page.
    advance
        Called with a line about each step as it begins.

    Returns
    -------
    The report; its `met` says whether the ceiling is proven, in the whole table and in every slice.

    Raises
    ------
    NoTheoremError, InputError
        Where the table or an option cannot be used.
    """
    named = (output,) if isinstance(output, str) else tuple(output)
    secrets = (secret,) if isinstance(secret, str) else tuple(secret)
    task = Task(
        table=Path(table),
        secret=secrets[0] if secrets else "",
        outputs=tables.expanded(Path(table), named, name="table", without=(*secrets, slices, group, target)),
        noise=noise,
        noise_added=noise_added,
        monotone=assume_one_direction,
        lipschitz=assume_max_slope,
        positive=positive,
        slices=slices,
        secret_range=secret_range,
        group=group,
        failure_probability=failure_probability,
        require_advantage=require_advantage,
        attack_rows=attack_rows,
        seed=seed,
        pictures=pictures,
        code=code,
        menu=menu,
        target=target,
        release_code=None if release_code is None else Path(release_code),
    )
    timed = Timed(advance)
    if record is not None or model is not None or trained_with is not None:
        alone = len(secrets) == 1
        return audit_repeated(
            task, record=record or (), model=model, trained_with=trained_with, alone=alone, advance=timed
        )
    tasks = [replace(task, secret=each, failure_probability=failure_probability / len(secrets)) for each in secrets]
    check_secrets(secrets, task)
    for each in tasks:
        check(each)
    pages = [_page(each, timed) for each in tasks]
    return pages[0] if len(pages) == 1 else together(tasks, pages, failure_probability)


def _page(task: Task, timed: Timed) -> Report:
    """The report on one secret: of two values, of more, or a number."""
    if task.secret_range is None:
        try:
            kept = (read_vectors if task.code is not None else read_matrix if task.matrix else read)(task, timed)
        except SeveralValuesError:
            refuse_of_two(task)
        else:
            kept.copied = repeats(task, kept.copied)
            if kept.copied is not None:
                kept.menu = None  # it would need independent rows, too
            found = findings(task, kept, timed)
            if task.pictures:
                timed("drawing")
            if task.release_code is not None and kept.seen is not None:
                kept.seen.code.save(task.release_code)
            pictures = pictures_of(task, kept, found) if task.pictures else ()
            return with_repeats(task, page(task, kept, found, pictures), kept.copied)
    return guess_page(task, timed)
