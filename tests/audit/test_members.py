"""The table of a classifier: its scores are what they say, and over-fitting shows in them."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from tacit import InputError
from tacit.audit import attempts, certify, membership

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(1200, 5))
LABELS = np.where((INPUTS[:, 0] > 0) ^ (RNG.random(1200) < 0.25), "yes", "no")
IN, OUT = (INPUTS[:600], LABELS[:600]), (INPUTS[600:], LABELS[600:])


def test_scores_are_what_they_say():
    model = LogisticRegression().fit(*IN)
    table = membership(model, IN, OUT)
    chances = model.predict_proba(INPUTS)
    own = chances[np.arange(1200), (LABELS == "yes").astype(int)]
    np.testing.assert_allclose(table.scores["loss"], -np.log(own))
    np.testing.assert_allclose(table.scores["confidence"], chances.max(axis=1))
    np.testing.assert_allclose(table.scores["entropy"], -(chances * np.log(chances)).sum(axis=1))
    np.testing.assert_array_equal(table.scores["correct"], model.predict(INPUTS) == LABELS)
    np.testing.assert_array_equal(table.member, np.arange(1200) < 600)


def test_a_torch_module_with_the_same_weights_scores_the_same():
    model = LogisticRegression().fit(*IN)
    module = torch.nn.Sequential(torch.nn.Linear(5, 2), torch.nn.Dropout(0.9)).double().train()
    with torch.no_grad():
        module[0].weight[:] = torch.from_numpy(np.vstack([np.zeros(5), model.coef_[0]]))
        module[0].bias[:] = torch.from_numpy(np.array([0.0, model.intercept_[0]]))
    numbered = [(inputs, (labels == "yes").astype(int)) for inputs, labels in (IN, OUT)]
    one, two = membership(model, IN, OUT), membership(module, *numbered)
    for name, score in one.scores.items():
        np.testing.assert_allclose(score.astype(float), two.scores[name].astype(float), rtol=1e-9, atol=1e-12)
    assert module.training  # as it was, though dropout was off meanwhile


def test_an_infinite_loss_is_cut_off():
    table = membership(DecisionTreeClassifier(random_state=0).fit(*IN), IN, OUT)
    assert table.scores["loss"].max() == 50
    assert table.scores["loss"].min() == 0


def test_a_tree_that_learns_by_heart_is_found_and_bounded():
    table = membership(DecisionTreeClassifier(random_state=0).fit(*IN), IN, OUT, draws=4000)
    right = table.scores["correct"]
    certificate = certify(
        table.member, right, failure_probability=0.05, loss="zero-one", name="whether the label is right"
    )
    (attempt,) = attempts(table.member, right, certificate=certificate, learners=["threshold"])
    gap = right[table.member].mean() - right[~table.member].mean()
    assert gap > 0.2
    assert attempt.low <= gap <= certificate.advantage < gap + 0.05


def test_shadow_models_tell_more_than_the_loss():
    def factory(inputs, labels):
        return DecisionTreeClassifier(min_samples_leaf=3, random_state=0).fit(inputs, labels)

    table = membership(factory(*IN), IN, OUT, factory=factory, shadows=16)

    def area(score):
        ranks = np.argsort(np.argsort(score + 1e-9 * RNG.random(1200)))
        return (ranks[table.member].mean() - 299.5) / 600

    for name in ("lira", "lira-offline", "rmia", "calibrated"):
        assert area(table.scores[name]) > area(-table.scores["loss"]) + 0.01, name
    assert area(table.scores["rmia"]) > area(-table.scores["loss"]) + 0.02
    assert area(table.scores["label"]) > area(table.scores["correct"])
    assert area(-table.scores["loss"]) > 0.55


def test_draws_are_independent_rows_of_the_same_records():
    model = LogisticRegression().fit(*IN)
    every, drawn = membership(model, IN, OUT), membership(model, IN, OUT, draws=50, seed=1)
    assert drawn.member.sum() == 50
    assert (~drawn.member).sum() == 50
    for member in (True, False):
        known = set(every.scores["loss"][every.member == member].tolist())
        assert set(drawn.scores["loss"][drawn.member == member].tolist()) <= known


def test_what_is_no_classifier_and_no_records_is_refused():
    model = LogisticRegression().fit(*IN)
    with pytest.raises(InputError, match="predict_proba, or a torch module"):
        membership(object(), IN, OUT)
    with pytest.raises(InputError, match="must be classes that the model knows"):
        membership(model, IN, (OUT[0], np.full(600, "maybe")))
    with pytest.raises(InputError, match=r"must be \(X, y\)"):
        membership(model, IN, OUT[0])
    with pytest.raises(InputError, match=r"must be \(X, y\)"):
        membership(model, (IN[0], IN[1][:5]), OUT)
