"""Train a model and write its scores on training records and on others: train.py {small,large} TABLE."""

import csv
import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

from tacit.audit import membership

size, path = sys.argv[1:]
inputs, labels = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(labels))
inside, outside = order[:900], order[900:]
# The large one learns its training records by heart; the small one forms no group of fewer than 40 records.
options = {"large": {"bootstrap": False}, "small": {"min_samples_leaf": 40}}[size]
model = RandomForestClassifier(50, random_state=0, **options).fit(inputs[inside], labels[inside])
table = membership(model, (inputs[inside], labels[inside]), (inputs[outside], labels[outside]), draws=10_000)
with open(path, "w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerow(["member", "score"])
    writer.writerows(zip(table.member, np.round(table.scores["confidence"], 1), strict=True))
print(f"the {size} model reads {model.score(inputs[outside], labels[outside]):.0%} of other digits; wrote {path}")
