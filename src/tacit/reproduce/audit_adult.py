"""What a prediction of income, or its score, tells about a person's sex and race."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from ..core.errors import InputError
from ..learning import Columns
from ..report import Change, Report
from ..report.wording import percent
from ..runtime import run_folder
from . import audit_page as page
from .audit_cases import Advance, Array, Case, Found, Task, audited, mark
from .data import adult_tables

SCORE_NOISE = 0.1

_TRUTH = "true income"
_CLASS, _NOISY_SCORE = "class", "noisy score"
_MODELS = {
    "all columns": (),
    "no sex, race": ("sex", "race"),
    "no kinship either": ("sex", "race", "relationship", "marital-status"),
}


def income_steps(task: Task) -> list[float]:
    """Return about how many seconds each step takes: reading, training, and the audits of each secret."""
    share = (task.records or 32_561) / 32_561
    by_class, noisy = 0.5 + 0.6 * share, 0.5 + 2.7 * share
    return [0.0, *[5.0] * len(_MODELS), *[by_class, *[by_class, noisy] * len(_MODELS)] * 2]


def income_audits(task: Task, folder: Path, advance: Advance) -> Report:
    """Audit the larger file of Adult, and learn from the smaller one: more rows make certificates tighter."""
    (table, income), (known, known_income) = adult_tables(folder / "adult.tar.xz")
    count = len(income) if task.records is None else task.records
    if count > len(income):
        raise InputError("--records", count, requirement=f"must be at most {len(income)}", remedy="leave it out")
    chosen = np.sort(np.random.default_rng(task.seed).permutation(len(income))[:count])
    table, income = {name: column[chosen] for name, column in table.items()}, income[chosen]
    run_folder.claim(task.out, mark(task, [*table.values(), *known.values()]), resume=task.resume)
    scores = {}
    for name, left_out in _MODELS.items():
        advance(f"training: {name}")
        path = task.out / f"scores-{len(left_out)}.npy"
        make = partial(_income_scores, table, known, known_income, left_out, task.seed)
        scores[name] = run_folder.array(path, (count,), make)
    secrets = {"sex": table["sex"], "race": np.where(table["race"] == "White", "white", "other")}
    cases = []
    for secret, values in secrets.items():
        cases.append(Case(model=_TRUTH, secret=secret, output=_CLASS, secrets=values, outputs=income))
        for name, score in scores.items():
            common: Any = {"model": name, "secret": secret, "secrets": values}
            cases.append(Case(**common, output=_CLASS, outputs=(score > 0.5).astype(np.int64)))
            cases.append(Case(**common, output=_NOISY_SCORE, outputs=score, noise=SCORE_NOISE))
    found = audited(task, cases, advance, attacked=np.arange(count))
    right = [f"{100 * np.mean((score > 0.5) == income):.1f} % ({name})" for name, score in scores.items()]
    summary = (
        (
            f"{count} people are audited; the models learned from {len(known_income)} others, and predict the income "
            f"of {', '.join(right)} correctly."
        ),
        (
            f"Income itself tells {page.between(found, _TRUTH, 'sex', _CLASS)} about sex and "
            f"{page.between(found, _TRUTH, 'race', _CLASS)} about race: a model that is always right must tell this."
        ),
        *(_blindness(found, secret) for secret in secrets),
        (
            "These are advantages (TPR − FPR), from what an attack has shown to what nobody exceeds. Sex is Female or "
            "Male in this data set; race is grouped into white and other."
        ),
        *page.counted(found),
    )
    shown = page.intervals(
        {f"{one['secret']} from {one['output']} ({one['model']})": one for one in found},
        "What a prediction of income tells about people",
    )
    return page.delivered(
        task,
        title="What a prediction of income tells about sex and race",
        heading="Adult: protected attributes from predictions",
        summary=summary,
        tables=page.tables(
            found,
            ("model", "secret", "output"),
            f"Noisy: with Gaussian noise of {SCORE_NOISE:g}. Models used all columns, all except sex and race, or all "
            "except these, relationship and marital status.",
        ),
        found=found,
        shown={
            "intervals": shown,
            "roc": page.roc(page.one_of(found, next(iter(_MODELS)), "sex", _NOISY_SCORE)),
        },
        changes=(_fewer_columns(found, [float(np.mean((score > 0.5) == income)) for score in scores.values()]),),
    )


def _fewer_columns(found: list[Found], right: list[float]) -> Change:
    """Say what leaving out all columns about kinship, sex and race brings, and what it costs."""
    everything, *_, fewest = (page.between(found, name, "sex", _NOISY_SCORE) for name in _MODELS)
    return Change(
        what=f"Leave out {', '.join(_MODELS[next(reversed(_MODELS))])}: a noisy score then tells {fewest} about sex, "
        f"instead of {everything} with all columns.",
        price=f"{percent(right[-1])} of the predictions are right, instead of {percent(right[0])}.",
    )


def _income_scores(
    table: Mapping[str, Array], known: Mapping[str, Array], income: Array, left_out: Sequence[str], seed: int
) -> NDArray[np.float64]:
    """Return the probability of a large income that gradient boosting gives each person."""
    seen = {name: column for name, column in known.items() if name not in left_out}
    columns = Columns().fit(seen)
    model = HistGradientBoostingClassifier(random_state=seed).fit(columns.transform(seen), income)
    chances: NDArray[np.float64] = model.predict_proba(columns.transform(table))[:, 1]
    return chances


def _blindness(found: list[Found], secret: str) -> str:
    by_model = [f"{page.between(found, name, secret, _NOISY_SCORE)} ({name})" for name in _MODELS]
    return f"A score with noise of {SCORE_NOISE:g} tells about {secret}: {'; '.join(by_model)}."
