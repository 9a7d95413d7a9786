"""Private classifiers of texts, images and tables by public features, beside a model of the same records without noise.

    python benchmarks/encoded.py DATA FILE [--directions 32] [--epsilon 0.1 0.5] [--runs 5]

DATA is one of sst2, cifar10, fashion and location; FILE is an .npz file with x_train, y_train, x_test and y_test (for
location x and y), or, for sst2, the folder with train.tsv and test.tsv, whose texts are then encoded by
all-MiniLM-L6-v2 (about ten minutes; `--keep FILE.npz` writes the features). Features are projected onto so many
principal directions of public records, and classes are named. docs/results/encoded.md says what is private.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from tacit.learning import OrientedGradients, PrivateClassifier, TextEncoder

DELTA = 1e-5
Split = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
"""Private records and labels, public records, test records and labels."""


def encoded(folder: Path) -> dict[str, NDArray[Any]]:
    """SST-2 by MiniLM."""
    found: dict[str, NDArray[Any]] = {}
    for part in ("train", "test"):
        rows = [line.rsplit("\t", 1) for line in (folder / f"{part}.tsv").read_text(encoding="utf-8").splitlines()]
        texts = np.array([text for text, _ in rows], dtype=object)
        found[f"x_{part}"] = TextEncoder().encode(texts, advance=lambda line: print(line, file=sys.stderr))
        found[f"y_{part}"] = np.array([int(label) for _, label in rows])
    return found


def splits(data: str, held: dict[str, NDArray[Any]]) -> Iterator[Split]:
    """What is private, public and tested."""
    if data == "location":  # of 5010 records: 3010 private, 1000 public, 1000 tested
        order = np.random.default_rng(0).permutation(len(held["x"]))
        x, y = held["x"][order].astype(np.float64), held["y"][order]
        yield x[:3010], y[:3010], x[3010:4010], x[4010:], y[4010:]
    elif data == "sst2":  # of the training file, the first 5500 are private, the rest public
        x = held["x_train"]
        yield x[:5500], held["y_train"][:5500], x[5500:], held["x_test"], held["y_test"]
    else:  # the training file is private; of the test file, 9000 are public, and 1000 are tested, in two ways
        x, test = (held[name].reshape(len(held[name]), -1).astype(np.float64) for name in ("x_train", "x_test"))
        if data == "fashion":
            gradients = OrientedGradients(upright=False).fit(test)
            x, test = gradients.transform(x), gradients.transform(test)
        for tested in (slice(9000, None), slice(None, 1000)):
            public = np.delete(test, np.arange(len(test))[tested], axis=0)
            yield x, held["y_train"], public, test[tested], held["y_test"][tested]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", choices=["sst2", "cifar10", "fashion", "location"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--directions", type=int, default=32)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.5])
    parser.add_argument("--mechanism", nargs="+", default=["moments"])
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    held: dict[str, Any] = encoded(asked.file) if asked.file.is_dir() else dict(np.load(asked.file))
    if asked.keep is not None:
        np.savez_compressed(asked.keep, **held)
    plain: list[float] = []
    right: dict[tuple[str, float], list[float]] = {}
    for private, labels, public, test, truth in splits(asked.data, held):
        mean, spread = public.mean(axis=0), public.std(axis=0).mean()
        private, public, test = ((rows - mean) / spread for rows in (private, public, test))
        plain.append(float(LogisticRegression(max_iter=300, tol=1e-3).fit(private, labels).score(test, truth)))
        rule = PCA(asked.directions, random_state=0).fit(public)
        private, public, test = map(rule.transform, (private, public, test))
        for mechanism in asked.mechanism:
            for epsilon in asked.epsilon:
                for _ in range(asked.runs):
                    model = PrivateClassifier(
                        epsilon=epsilon, delta=DELTA, mechanism=mechanism, classes=np.unique(labels).tolist()
                    )
                    share = float(
                        np.mean(model.fit(private, labels, public, allow_overlap=True).predict(test) == truth)
                    )
                    right.setdefault((mechanism, epsilon), []).append(share)
                here = right[mechanism, epsilon][-asked.runs :]
                print(f"{mechanism} ε = {epsilon:g}: {np.round(here, 4).tolist()}", file=sys.stderr, flush=True)
    print(f"{asked.data}: without noise {100 * np.mean(plain):.1f} %")
    for (mechanism, epsilon), found in right.items():
        print(f"{mechanism}, ε = {epsilon:g}: {100 * np.mean(found):.1f} %, worst run {100 * np.min(found):.1f} %")


if __name__ == "__main__":
    main()
