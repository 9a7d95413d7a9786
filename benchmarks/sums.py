"""Numbers and several labels of Adult, learned from noisy sums of teachers' answers, beside the same without privacy.

    python benchmarks/sums.py [--data FOLDER]

Reads adult.tar.xz from the folder. adult.data and adult.test together, in a fixed random order: 3000 public records,
6000 to test, the others private. Teachers, students and constants are those that ship, with as many
teachers as "auto" takes; a hundredth of ε pays for their number. Teachers are trained once, and noise is drawn four
times.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score, r2_score

from tacit.learning import AnswerSums, Columns, PrivateMultiLabelClassifier, PrivateRegressor
from tacit.learning.answer_sums import summed_answers
from tacit.learning.owners import owners
from tacit.learning.shares import Shares
from tacit.learning.summed_fit import SummedFit
from tacit.reproduce.data import adult_tables

PUBLIC, TEST, DELTA, DRAWS = 3000, 6000, 1e-5, 4
EPSILONS = (0.5, 1.0, 4.0)
_Floats = NDArray[np.float64]


def parts(path: Path, without: set[str]) -> tuple[_Floats, _Floats, _Floats, dict[str, NDArray[Any]]]:
    """Public, test and private features, and the columns left out of them, all in one order."""
    (data, income), (more, rich) = adult_tables(path)
    table: dict[str, NDArray[Any]] = {name: np.concatenate([data[name], more[name]]) for name in data}
    table["income"] = np.concatenate([income, rich])
    order = np.random.default_rng(0).permutation(len(table["income"]))
    table = {name: column[order] for name, column in table.items()}
    features = {name: column for name, column in table.items() if name not in without | {"fnlwgt"}}
    rule = Columns().fit({name: column[:PUBLIC] for name, column in features.items()})
    rows = rule.transform(features)
    return rows[:PUBLIC], rows[PUBLIC : PUBLIC + TEST], rows[PUBLIC + TEST :], table


def students(model: SummedFit, public: _Floats, private: _Floats, values: _Floats) -> dict[float, list[SummedFit]]:
    """The model, fitted to each draw of the noise."""
    grid, teachers = model._grid(), len(private) // model.records_each
    shipped = model._values(values, records=len(private))
    sums = summed_answers(
        model._estimator(),
        private,
        shipped,
        public,
        owners=owners(private, None),
        key=bytes(32),
        teachers=teachers,
        grid=grid,
    )
    model._asked(public)
    model.n_features_in_ = public.shape[1]
    found: dict[float, list[SummedFit]] = {}
    for epsilon in (*EPSILONS, np.inf):
        mechanism = None
        if np.isfinite(epsilon):
            left, delta = Shares(epsilon=epsilon, delta=DELTA, counting=True).left
            mechanism = AnswerSums(epsilon=left, delta=delta, sums=sums.size, reach=grid.reach)
        for _ in range(DRAWS if mechanism else 1):
            one = type(model)(**model.get_params(deep=False))
            one.asked_, one.n_features_in_ = model.asked_, model.n_features_in_
            one._learn(sums if mechanism is None else mechanism.release(sums), public, teachers, grid)
            found.setdefault(epsilon, []).append(one)
    return found


def shown(name: str, scores: dict[float, list[float]], plain: float) -> None:
    """A row of the page."""
    cells = [f"{np.mean(found):.3f} (least {min(found):.3f})" for found in scores.values()]
    print(f"{name} | " + " | ".join(cells) + f" | {plain:.3f}", flush=True)


def main() -> None:
    """Both tables of the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    path = parser.parse_args().data / "adult.tar.xz"
    print("what | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " | teachers without noise | no privacy")
    for target, low, high in (("age", 17, 90), ("hours-per-week", 0, 100)):
        public, test, private, table = parts(path, {target})
        values = table[target].astype(np.float64)
        tested, taught = values[PUBLIC : PUBLIC + TEST], values[PUBLIC + TEST :]
        models = students(PrivateRegressor(label_range=(low, high)), public, private, taught)
        scores = {e: [float(r2_score(tested, one.predict(test))) for one in found] for e, found in models.items()}
        shown(f"{target}, R²", scores, float(r2_score(tested, Ridge().fit(private, taught).predict(test))))
    public, test, private, table = parts(path, {"income", "marital-status", "relationship", "sex"})
    married = np.char.startswith(table["marital-status"].astype(str), "Married")
    labels = np.column_stack([table["income"] == 1, married, table["sex"] == "Female"]).astype(np.float64)
    tested, taught = labels[PUBLIC : PUBLIC + TEST], labels[PUBLIC + TEST :]
    several = students(PrivateMultiLabelClassifier(), public, private, taught)
    scores = {e: [float(f1_score(tested, one.predict(test), average="micro")) for one in f] for e, f in several.items()}
    said = np.column_stack(
        [LogisticRegression(max_iter=1000).fit(private, column).predict(test) for column in taught.T]
    )
    shown("income, married, female, F1", scores, float(f1_score(tested, said, average="micro")))


if __name__ == "__main__":
    main()
