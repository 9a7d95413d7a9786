import copy
import dataclasses
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import Adversary, Assumption, Attack, Comparison, Guarantee, IncomparableError, InputError
from tacit.core.wording import safe_text, text_above

words = st.text(min_size=1).filter(str.strip)
not_nan = st.floats(allow_nan=False)
adversaries = st.one_of(
    st.sampled_from([Adversary.ANY, Adversary.UNBIASED, Adversary.PRIOR, Adversary.OUTPUT]),
    st.builds(Adversary.PRIOR.scoped, words),
    st.builds(Adversary.OUTPUT.scoped, words),
)
keys = st.text().filter(lambda key: not key.startswith("$"))
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(keys, inner),
    max_leaves=10,
)
theorem_names = st.sampled_from(["Le Cam", "theory.estimation.two_point_mse", "theory.leakage.roc_upper", "none: yet"])
guarantees = st.builds(
    Guarantee,
    quantity=words,
    side=st.sampled_from(["at_least", "at_most"]),
    value=not_nan,
    adversary=adversaries,
    theorem=st.one_of(words.filter(lambda text: not text.startswith("theory.")), st.lists(theorem_names, min_size=1)),
    assumptions=st.lists(st.builds(Assumption, text=words, checked_by=st.sampled_from(["code", "caller"])), max_size=3),
    failure_probability=st.floats(0, 1, exclude_max=True),
    detail=st.dictionaries(keys, plain, max_size=3),
)
attacks = st.builds(
    lambda ends, **rest: Attack(low=min(ends), value=sorted(ends)[1], high=max(ends), **rest),
    ends=st.tuples(not_nan, not_nan, not_nan),
    quantity=words,
    failure_probability=st.floats(0, 1, exclude_max=True),
    adversary=adversaries,
    method=words,
)


def guarantee(**changes):
    fields = {
        "quantity": "mean squared error",
        "side": "at_least",
        "value": 1.0,
        "adversary": Adversary.ANY,
        "theorem": "Le Cam",
        "assumptions": (Assumption(text="Gaussian noise", checked_by="caller"),),
    }
    return Guarantee(**{**fields, **changes})


def attack(**changes):
    fields = {
        "quantity": "mean squared error",
        "value": 2.0,
        "low": 1.5,
        "high": 2.5,
        "failure_probability": 0.01,
        "adversary": Adversary.ANY,
        "method": "decoder",
    }
    return Attack(**{**fields, **changes})


def same(one, other):
    """Equality in which nan equals nan and 1 differs from 1.0 and True."""
    return repr(one) == repr(other)


@given(guarantees)
def test_guarantees_return_from_json_unchanged(original):
    assert same(Guarantee.from_json(original.to_json()), original)
    assert same(Guarantee.from_dict(original.to_dict()), original)


def test_a_theorem_is_one_text_or_names_of_functions():
    assert guarantee().theorem == ("Le Cam",)
    assert (guarantee().references, guarantee().theorem_text, guarantee().proof_text) == ((), "Le Cam", "")
    names = ("theory.estimation.two_point_mse", "theory.leakage.roc_upper")
    made = guarantee(theorem=["Le Cam", *names, names[0]])
    assert made.theorem == ("Le Cam", *names)
    assert made.references == names
    assert made.theorem_text == f"Le Cam: {names[0]}, {names[1]}"
    assert made.proof_text == "tacit proof two_point_mse roc_upper"
    assert made.to_dict()["proofs"] == {names[0]: "docs/proofs/estimation.md", names[1]: "docs/proofs/leakage.md"}
    assert guarantee(theorem="none: nothing was proven").references == ()


@pytest.mark.parametrize("wrong", ["theory.estimation", "theory.estimation: two points", [], [""], ["Le Cam", 3], None])
def test_what_only_looks_like_a_reference_is_refused(wrong):
    with pytest.raises(InputError, match="theorem must"):
        guarantee(theorem=wrong)


def test_files_of_schema_1_are_read():
    old = {
        "schema": 1,
        "quantity": "mean squared error",
        "side": "at_least",
        "value": 1.0,
        "adversary": {"schema": 1, "kind": "any", "scope": ""},
        "theorem": "Le Cam: docs/proofs",
        "assumptions": [{"schema": 1, "text": "Gaussian noise", "checked_by": "caller"}],
        "failure_probability": 0.0,
        "detail": {},
    }
    assert Guarantee.from_dict(old) == guarantee(theorem="Le Cam: docs/proofs")
    achieved = {key: 1 if key == "schema" else value for key, value in attack().to_dict().items()}
    achieved["adversary"] = old["adversary"]
    achieved["confidence"] = 0.99
    del achieved["failure_probability"]
    derived = {"contradicted": False, "gap": 1.0}
    made = Comparison.from_dict({"schema": 1, "guarantee": old, "attack": achieved, **derived})
    assert made == Comparison(guarantee=Guarantee.from_dict(old), attacks=[attack(failure_probability=1 - 0.99)])
    alone = Comparison.from_dict({"schema": 1, "guarantee": old, "attack": None, "contradicted": False, "gap": None})
    assert alone.attacks == ()
    with pytest.raises(InputError, match="must follow from"):
        Comparison.from_dict({"schema": 1, "guarantee": old, "attack": achieved, **derived, "gap": 2.0})
    with pytest.raises(InputError, match="entries of a Guarantee"):
        Guarantee.from_dict({**old, "proofs": {}})
    with pytest.raises(InputError, match="must follow from"):
        Guarantee.from_dict({**guarantee().to_dict(), "proofs": {"theory.leakage.roc_upper": "nowhere"}})


def test_attacks_of_earlier_files_hold_a_confidence():
    earlier = attack().to_dict()
    del earlier["failure_probability"]
    assert Attack.from_dict({**earlier, "confidence": 0.75}) == attack(failure_probability=0.25)
    with pytest.raises(InputError, match="confidence must"):
        Attack.from_dict({**earlier, "confidence": 0})


def test_a_number_of_few_digits_is_printed_as_it_is():
    for text in ("0.100", "0.0500", "1.10", "0.300"):  # the floats of some lie above, of others below
        assert safe_text(float(text), toward="up") == safe_text(float(text), toward="down") == text
    assert safe_text(0.1001, toward="up") == "0.101"


@given(attacks)
def test_attacks_return_from_json_unchanged(original):
    assert same(Attack.from_json(original.to_json()), original)


@given(guarantees, attacks, st.integers(0, 3))
def test_comparisons_return_from_json_unchanged(bound, achieved, count):
    matching = dataclasses.replace(achieved, quantity=bound.quantity, adversary=bound.adversary)
    original = Comparison(guarantee=bound, attacks=[matching] * count)
    assert same(Comparison.from_json(original.to_json()), original)


@given(guarantees)
def test_json_is_strict(original):
    def refuse(constant):
        raise AssertionError(constant)

    assert json.loads(original.to_json(), parse_constant=refuse)["schema"] == 2


def test_the_json_that_readers_rely_on():
    data = Comparison(guarantee=guarantee(value=math.inf), attacks=[attack()]).to_dict()
    assert data["contradicted"] is True
    assert data["gap"] == {"$float": "-inf"}
    assert data["guarantee"]["value"] == {"$float": "inf"}
    assert data["guarantee"]["adversary"] == {"schema": 2, "kind": "any", "scope": ""}
    assert Comparison(guarantee=guarantee()).to_dict()["attacks"] == []


def test_edited_json_is_refused():
    data = Comparison(guarantee=guarantee(), attacks=[attack()]).to_dict()
    for changed, message in (
        ({**data, "contradicted": True}, "must follow from"),
        ({**data, "gap": 5.0}, "must follow from"),
        ({**data, "schema": 3}, "must be one from 1 to 2"),
        ({**data, "extra": 1}, "must be guarantee, attacks"),
        ({key: value for key, value in data.items() if key != "gap"}, "must be guarantee, attacks"),
        ([data], "must be an object"),
    ):
        with pytest.raises(InputError, match=message):
            Comparison.from_dict(changed)


@pytest.mark.parametrize("make", [guarantee, attack, lambda: Comparison(guarantee=guarantee(), attacks=[attack()])])
def test_results_are_frozen_hold_no_loose_ends_and_survive_copying(make):
    result = make()
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.value = 0.0
    assert same(copy.deepcopy(result), result)
    assert same(pickle.loads(pickle.dumps(result)), result)  # noqa: S301 — our own bytes, as worker processes send them


def test_detail_cannot_be_changed_through_what_was_passed_in():
    mine = {"sizes": [1, 2]}
    result = guarantee(detail=mine)
    mine["sizes"].append(3)
    assert result.detail["sizes"] == (1, 2)
    with pytest.raises(TypeError):
        result.detail["sizes"] = 5


def test_numpy_numbers_become_plain_ones():
    result = guarantee(value=np.float32(0.5), detail={"n": np.int64(3), "x": np.float32(0.25)})
    assert (type(result.value), type(result.detail["n"]), type(result.detail["x"])) == (float, int, float)
    json.dumps(result.to_dict())


def test_positional_arguments_are_refused():
    with pytest.raises(TypeError):
        Assumption("text", "caller")


COVERED = [
    (Adversary.ANY, Adversary.ANY),
    (Adversary.ANY, Adversary.UNBIASED),
    (Adversary.ANY, Adversary.OUTPUT.scoped("score")),
    (Adversary.UNBIASED, Adversary.UNBIASED),
    (Adversary.PRIOR, Adversary.PRIOR),
    (Adversary.PRIOR.scoped("digits"), Adversary.PRIOR.scoped("digits")),
    (Adversary.OUTPUT.scoped("score"), Adversary.OUTPUT.scoped("score")),
]
EVERYONE = [
    Adversary.ANY,
    Adversary.UNBIASED,
    Adversary.PRIOR,
    Adversary.PRIOR.scoped("digits"),
    Adversary.PRIOR.scoped("faces"),
    Adversary.OUTPUT,
    Adversary.OUTPUT.scoped("score"),
]


@pytest.mark.parametrize("bound", EVERYONE)
@pytest.mark.parametrize("attacker", EVERYONE)
def test_a_comparison_is_refused_unless_the_class_covers_the_attacker(bound, attacker):
    allowed = (
        (bound, attacker) in COVERED or bound == attacker or (bound, attacker) == (Adversary.ANY, Adversary.OUTPUT)
    )
    if allowed:
        Comparison(guarantee=guarantee(adversary=bound), attacks=[attack(adversary=attacker)])
        return
    with pytest.raises(IncomparableError) as refusal:
        Comparison(guarantee=guarantee(adversary=bound), attacks=[attack(adversary=attacker)])
    assert bound.in_words in str(refusal.value)
    assert attacker.in_words in str(refusal.value)


def test_a_biased_decoder_is_not_compared_with_a_bound_on_unbiased_estimators():
    with pytest.raises(IncomparableError, match="unbiased estimators only"):
        Comparison(guarantee=guarantee(adversary=Adversary.UNBIASED), attacks=[attack(adversary=Adversary.ANY)])


def test_two_quantities_are_not_compared():
    with pytest.raises(IncomparableError, match=r"'mean squared error'.*'accuracy'"):
        Comparison(guarantee=guarantee(), attacks=[attack(quantity="accuracy")])


@pytest.mark.parametrize(
    ("side", "bound", "contradicted", "gap"),
    [
        ("at_least", 1.0, False, 1.0),
        ("at_least", 2.4, False, -0.4),  # the value lies beyond, the interval does not
        ("at_least", 2.5, False, -0.5),
        ("at_least", 2.6, True, -0.6),
        ("at_most", 3.0, False, 1.0),
        ("at_most", 1.5, False, -0.5),
        ("at_most", 1.4, True, -0.6),
    ],
)
def test_contradiction_needs_the_whole_interval(side, bound, contradicted, gap):
    comparison = Comparison(guarantee=guarantee(side=side, value=bound), attacks=[attack()])
    assert comparison.contradicted is contradicted
    assert comparison.gap == pytest.approx(gap)


def test_any_of_several_attacks_contradicts():
    far, near, beyond = (attack(value=v, low=v - 0.1, high=v + 0.1, method=f"reached {v}") for v in (3.0, 1.2, 0.8))
    tried = Comparison(guarantee=guarantee(), attacks=[far, near])
    assert (tried.contradicted, tried.contradicting, tried.nearest) == (False, (), near)
    assert tried.gap == pytest.approx(0.2)
    found = Comparison(guarantee=guarantee(), attacks=[far, beyond, near])
    assert (found.contradicted, found.contradicting, found.nearest) == (True, (beyond,), beyond)
    assert found.gap == pytest.approx(-0.2)
    above = Comparison(guarantee=guarantee(side="at_most"), attacks=[beyond, near])
    assert (above.nearest, above.contradicting) == (near, (near,))
    assert found.attacks == (far, beyond, near)
    assert found.false_alarm_probability == pytest.approx(0.03)


def test_one_attack_that_says_nothing_is_refused_among_others():
    with pytest.raises(IncomparableError, match="accuracy"):
        Comparison(guarantee=guarantee(), attacks=[attack(), attack(quantity="accuracy")])
    for wrong in ([attack(), None], attack(), "attack"):
        with pytest.raises(InputError, match="attacks"):
            Comparison(guarantee=guarantee(), attacks=wrong)


def test_the_one_attack_of_earlier_versions_still_works_and_warns():
    with pytest.warns(DeprecationWarning, match="give attacks") as warned:
        old = Comparison(guarantee=guarantee(), attack=attack())
    assert warned[0].filename == __file__
    assert old == Comparison(guarantee=guarantee(), attacks=[attack()])
    with pytest.warns(DeprecationWarning, match="use nearest"):
        assert old.attack == attack()
    beside = pytest.raises(InputError, match="must not stand beside attacks")
    with pytest.warns(DeprecationWarning, match="give attacks"), beside:
        Comparison(guarantee=guarantee(), attacks=[attack()], attack=attack())


def test_no_attack_contradicts_nothing():
    comparison = Comparison(guarantee=guarantee())
    assert (comparison.contradicted, comparison.gap) == (False, None)


def test_equal_infinities_leave_no_gap():
    ends = {"value": math.inf, "low": math.inf, "high": math.inf}
    assert Comparison(guarantee=guarantee(value=math.inf), attacks=[attack(**ends)]).gap == 0


def test_false_alarms_add_up():
    comparison = Comparison(guarantee=guarantee(failure_probability=0.25), attacks=[attack(failure_probability=0.5)])
    assert comparison.false_alarm_probability == 0.75


@given(st.floats(-1e300, 1e300), st.integers(1, 6))
def test_printed_numbers_are_rounded_to_the_safe_side(value, digits):
    def number(toward):
        return float(safe_text(value, toward=toward, digits=digits).replace("−", "-"))

    assert number("down") <= value <= number("up")
    assert number("nearest") in (number("down"), number("up"))
    assert abs(number("up") - number("down")) <= 10.0 ** (1 - digits) * abs(value) * 1.0001 + 5e-324


def test_guarantees_can_be_members_of_sets():
    assert len({guarantee(), guarantee(), guarantee(value=2.0), guarantee(detail={"a": [1]})}) == 3


def test_the_chance_of_an_error_is_printed():
    assert attack(failure_probability=2e-6).value_text == "2 (1.5 to 2.5, except with probability 2e-06)"
    assert attack(failure_probability=0).value_text == "2 (1.5 to 2.5)"
    assert attack(value=2.0, low=2.0, high=2.0, failure_probability=0).value_text == "2 (exact)"


def test_sentences():
    assert str(guarantee(failure_probability=0.05)).endswith("by any method, except with probability 0.05")
    assert "no adversary of this class exists" in str(guarantee(value=math.inf))
    assert str(guarantee(value=0.12345)) == "mean squared error is at least 0.123 for anyone, by any method"
    named = guarantee(
        theorem=("Le Cam", "theory.estimation.two_point_mse", "theory.divergences.gaussian_total_variation")
    )
    assert str(named).endswith(" (tacit proof two_point_mse gaussian_total_variation)")
    assert str(guarantee(side="at_most", value=0.12345)) == (
        "mean squared error is at most 0.124 for anyone, by any method"
    )
    assert str(attack()) == "decoder: mean squared error of 2 (1.5 to 2.5, except with probability 0.01)"


@pytest.mark.parametrize(("value", "text"), [(1e-5, "1e-05"), (0.1, "0.1"), (3.0, "3"), (1.2345649e-5, "1.23457e-5")])
def test_what_is_printed_of_a_promise_is_never_less(value, text):
    assert text_above(value) == text
    assert float(text) >= value
