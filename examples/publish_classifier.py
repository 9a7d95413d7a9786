# %% [markdown]
# # Publishing a classifier learned from private records
#
# A census office holds records of people and what they earn. It wants to publish a classifier, and promise everyone in
# the table that the classifier hardly depends on their record. Any learner will do: it is trained on disjoint chunks of
# the records, the chunks vote on public records, and a student learns from noisy votes.
#
# Needs `pip install 'tacit-privacy[learning,ledger]'`. Takes about half a minute. The data are UCI's Adult, as
# `adult.tar.xz` in the folder that the environment variable `TACIT_DATA` names. Without it a table that comes with
# scikit-learn is used, 569 records of tumours: far too few for a good private classifier, and the example says so.

# %%
import csv
import os
import tarfile
from pathlib import Path

import numpy as np
import skops.io
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import tacit

NAMES = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
)


def adult(path):
    """A dict of columns, and whether each person earns more than 50 000 dollars a year."""
    with tarfile.open(path) as archive:
        [name] = [name for name in archive.getnames() if name.endswith("adult.data")]
        lines = archive.extractfile(name).read().decode().splitlines()
    rows = [row for row in csv.reader(lines, skipinitialspace=True) if len(row) == 15 and row[0].isdigit()]
    columns = dict(zip(NAMES, np.array(rows).T, strict=False))
    return columns, np.array([row[-1] for row in rows])


def tumours():
    """Without Adult: a table that comes with scikit-learn."""
    found = load_breast_cancer()
    return dict(zip(found.feature_names, found.data.T, strict=True)), found.target_names[found.target]


archive = Path(os.environ.get("TACIT_DATA", "../shared/data")) / "adult.tar.xz"
table, labels = adult(archive) if archive.exists() else tumours()
print(f"{'Adult' if archive.exists() else 'no adult.tar.xz: tumours instead'}, {len(labels)} records")

# %% [markdown]
# ## Private, public, and to test on
#
# Public records have no labels; anyone may see them. Columns become numbers by a rule that is read off the *public*
# records alone: scaling by private means would be a release of its own.

# %%
order = np.random.default_rng(0).permutation(len(labels))
private, public, test = np.split(order, [int(0.7 * len(order)), int(0.85 * len(order))])


def rows(places):
    return {name: column[places] for name, column in table.items()}


columns = tacit.learning.Columns().fit(rows(public))
print(f"{len(private)} private records, {len(public)} public ones; {len(columns.get_feature_names_out())} numbers each")

# %% [markdown]
# ## Spend a budget once
#
# The ledger writes down what a release costs before a vote is counted. Teachers are logistic regressions here, and the
# student is one that learns from noisy counts.

# %%
epsilon, delta, queries = 2.0, 1e-6, min(100, len(public))
Path("census.sqlite").unlink(missing_ok=True)  # the example begins anew; never do this with a ledger of yours
ledger = tacit.Ledger.open("census.sqlite", epsilon=epsilon, delta=delta)
mechanism = tacit.learning.GNMax(epsilon=epsilon, delta=delta, queries=queries, counts=True)
model = tacit.PrivateClassifier(
    LogisticRegression(max_iter=300),
    epsilon=epsilon,
    delta=delta,
    n_teachers=150 if archive.exists() else 20,  # fixed beforehand: how many records there are is private
    mechanism=mechanism,
    queries=queries,
    student=tacit.learning.VoteRegression(penalty=0.03),
    classes=sorted({str(label) for label in labels}),  # known beforehand: nothing is learned from their being listed
    ledger=ledger,
    random_state=0,
)
model.fit(columns.transform(rows(private)), labels[private], columns.transform(rows(public)))
print(model.guarantee_)
print("left in the ledger:", ledger.remaining)
try:
    clone(model).fit(columns.transform(rows(private)), labels[private], columns.transform(rows(public)))
except tacit.BudgetSpentError:
    print("a second fit would be a second release: refused")

# %% [markdown]
# ## How good is it?

# %%
right = float(np.mean(model.predict(columns.transform(rows(test))) == labels[test]))
unprotected = LogisticRegression(max_iter=300).fit(columns.transform(rows(private)), labels[private])
without = float(unprotected.score(columns.transform(rows(test)), labels[test]))
most = max(float(np.mean(labels[test] == label)) for label in model.classes_)
print(f"right on {right:.1%} of the test records; without privacy {without:.1%}; always the commonest class {most:.1%}")

# %% [markdown]
# ## Attack it
#
# The adversary knows all records but one, and so all votes but one. Most of ε lies in events that are too rare to be
# seen in games, so the attack sees from thousands of answers how large the noise is, and computes how likely all
# answers of a release are with the record and without. What it shows comes close to ε and must stay below.

# %%
attack = tacit.learning.distinguishing_attack(mechanism, runs=5000, failure_probability=1e-6)
comparison = tacit.Comparison(guarantee=model.guarantee_, attacks=[attack])
print(attack)
print("contradicted:", comparison.contradicted)

# %% [markdown]
# ## Publish it
#
# The file holds the student, the rule for the columns, and the guarantee; no teacher and no private record. Whoever
# gets it loads it with skops, which runs no code from the file.

# %%
skops.io.dump(columns.before(model.published()), "student.skops")
trusted = ["tacit.learning.classifier.PublishedClassifier", "tacit.learning.columns.Columns"]
trusted += ["tacit.learning.students.VoteRegression"]
student = skops.io.load("student.skops", trusted=trusted)
print("the published file says of the first test record:", student.predict(rows(test[:1]))[0])

# %%
report = tacit.report.Report(
    command="publish a classifier",
    title="A classifier that may be published",
    summary=(
        f"It learned from {len(private)} private records and is right on {right:.1%} of others.",
        f"A learner without privacy is right on {without:.1%}, always naming the commonest class on {most:.1%}.",
        f"A record makes any conclusion at most {np.exp(epsilon) + 0.05:.1f} times as likely, plus {delta:g}.",
        *["There are far too few records here: get thousands."] * (len(private) < 2000),
    ),
    comparisons=(comparison,),
    detail={"right": right, "without_privacy": without, "commonest_class": most, "records": len(private)},
)
Path("publish_classifier.html").write_text(report.to_html(), encoding="utf-8")
Path("publish_classifier.json").write_text(report.to_json(), encoding="utf-8")
report
