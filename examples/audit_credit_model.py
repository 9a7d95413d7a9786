# %% [markdown]
# # Auditing a credit model
#
# A bank wants to show applicants their credit score. Two questions before it does:
#
# 1. Does the score give away *who was in the training data*? (A lender's own customers are in it: that is a secret.)
# 2. Does the score give away *a protected attribute*, although the model never saw it?
#
# Attacks alone cannot answer: a failed attack may have been a bad one. A certificate bounds every attack.
#
# Needs `pip install tacit-privacy`. Takes about twenty seconds. Applicants are simulated, so that they can be shown.

# %%
from pathlib import Path

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

import tacit

rng = np.random.default_rng(0)


def applicants(count):
    """Income, debt, years in the job, missed payments; who repays; and sex, which the model does not see."""
    sex = rng.integers(0, 2, count)
    income = rng.lognormal(10.4 + 0.12 * sex, 0.5)
    debt = income * rng.beta(2, 5, count)
    years = rng.exponential(5, count)
    missed = rng.poisson(0.6, count)
    odds = 0.9 + 0.8 * np.log(income / 33_000) - 2.5 * debt / income + 0.08 * years - 0.9 * missed
    repaid = rng.random(count) < 1 / (1 + np.exp(-2 * odds))
    return np.column_stack([income, debt, years, missed]), repaid, sex


customers, repaid, _ = applicants(2_000)
others, others_repaid, _ = applicants(2_000)

# %% [markdown]
# ## How many applicants does an audit take?
#
# Ask before collecting anything: how many rows prove an advantage of at most 0.1 for a model that leaks nothing?

# %%
ceiling, failure_probability = 0.1, 0.05
print(
    tacit.audit.rows_needed(ceiling, failure_probability=failure_probability, loss="zero-one", values=1),
    "rows at least",
)

# %% [markdown]
# ## Two models, one question: was this person a customer?
#
# `membership` tabulates what a model says of its own records and of others. The score is released in steps of 0.1: a
# score with all its digits has as many values as there are people, and nothing could be certified about it.

# %%
forest = RandomForestClassifier(30, bootstrap=False, random_state=0).fit(customers, repaid)
boosting = GradientBoostingClassifier(n_estimators=30, max_depth=2, subsample=0.5, random_state=0)
boosting.fit(customers, repaid)


def audited(model, name):
    """The verdict on the score to one digit, and the attacks on it."""
    table = tacit.audit.membership(model, (customers, repaid), (others, others_repaid), draws=20_000)
    secret = np.where(table.member, "customer", "other")
    score = np.round(table.scores["confidence"], 1)
    found = tacit.certify(secret, score, failure_probability=failure_probability, positive="customer", name=name)
    tried = tacit.audit.attempts(secret, score, certificate=found, learners=["threshold", "histogram"])
    return tacit.audit.Audit(certificate=found, attacks=tried, require_advantage=ceiling), tried


results = {}
for model, name in ((forest, "the forest's score"), (boosting, "the boosted model's score")):
    results[name] = audited(model, name)
    print(f"right on {model.score(others, others_repaid):.0%} of others. {results[name][0].verdict}")

# %% [markdown]
# The forest learned its customers by heart. Both models are about as often right on others, so nothing is lost by
# releasing the other one.
#
# ## The same question about sex
#
# Here the table needs no model that remembers: any applicants will do, and each is one row. The certificate covers
# everyone who sees the score and nothing else; who also sees the income is not covered.

# %%
people, _, sex = applicants(40_000)
score = np.round(boosting.predict_proba(people)[:, 1], 1)
words = np.where(sex == 1, "man", "woman")
by_sex = tacit.certify(words, score, failure_probability=failure_probability, name="the boosted model's credit score")
tried = tacit.audit.attempts(words, score, certificate=by_sex, learners=["threshold", "histogram"])
fair = tacit.audit.Audit(certificate=by_sex, attacks=tried, require_advantage=ceiling)
print(fair.verdict)
print(f"a guess of the sex is right at most {by_sex.balanced_accuracy:.1%} of the time where a coin is right 50 %")

# %% [markdown]
# ## Report

# %%
leaky, tight = (both for both, _ in results.values())
report = tacit.report.Report(
    command="audit a credit model",
    title="What a credit score gives away",
    summary=(leaky.verdict, tight.verdict, fair.verdict),
    comparisons=tuple(both.comparisons[0] for both in (leaky, tight, fair)),
    figures=tuple(both.certificate.plot(tried) for both, tried in results.values()),
    detail={"ceiling": ceiling, "leaky_met": leaky.met, "tight_met": tight.met, "fair_met": fair.met},
)
Path("audit_credit_model.html").write_text(report.to_html(), encoding="utf-8")
Path("audit_credit_model.json").write_text(report.to_json(), encoding="utf-8")
report
