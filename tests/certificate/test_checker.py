"""The checker: it follows what Tacit proves, and refuses what is stronger by a percent or rests on changed inputs."""

import base64
import copy
import functools
import json
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import certified_cases as cases
import fuzz_checker
import pytest
import tacit_check

from tacit.learning.mechanisms import SparseVector
from tacit.theory.label_moments import labels_delta, labels_order, labels_sigma

FOLLOWS, FAILS, ELSEWHERE = "follows", "does not follow", "not checkable here"
CHECKER = Path(tacit_check.__file__)
LINES = 716
"""Of the checker, blank ones and comments included."""


@pytest.fixture(scope="module", autouse=True)
def _computed_once():
    """Most changes of a certificate leave a mechanism's constants as they were, and the checker reads the same numbers
    and takes the same exponentials and logarithms for every change, 50 digits each: remembered, they are the same
    numbers. The program that is run as people run it computes all of them.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("exp", "ln"):
            patch.setattr(tacit_check, name, functools.lru_cache(2**16)(getattr(tacit_check, name)))
        patch.setattr(tacit_check, "number", _known_texts(tacit_check.number))
        for name in ("sparse vector", "stable release", "gnmax", "gnmax labels", "gate", "confirm"):
            patch.setitem(tacit_check.MECHANISMS, name, _remembered(tacit_check.MECHANISMS[name]))
        yield


def _known_texts(number):
    """The same function; numbers in text are most of a certificate, and whatever is refused is read again."""
    known = functools.lru_cache(2**16)(number)

    def read(value, *given):
        return known(value, *given) if type(value) is str else number(value, *given)

    return read


def _remembered(mechanism):
    """The same function; what it returned for the same constants is returned again, and what it raised is not."""
    known = {}

    @functools.wraps(mechanism)
    def found(**constants):
        key = repr(constants)
        if key not in known:
            known[key] = mechanism(**constants)
        return known[key]

    return found


def verdict(statement):
    """The verdict on the only claim, or "refused" for what is no certificate."""
    try:
        [(found, _, _)] = tacit_check.check(json.dumps(statement).encode())
    except tacit_check.BadFileError:
        return "refused"
    return found


def claim_of(statement):
    return statement["predicate"]["claims"][0]


@pytest.mark.parametrize("name", cases.MADE)
def test_what_tacit_proves_follows(name):
    assert verdict(cases.statement(name)) == FOLLOWS


@pytest.mark.parametrize("name", cases.MADE)
def test_a_claim_that_is_one_percent_stronger_does_not(name):
    statement = cases.statement(name)
    claimed = claim_of(statement)["claimed"]
    factor = Fraction(99, 100) if claimed["side"] == "at most" else Fraction(101, 100)
    claimed["value"] = str(cases.exact(claimed["value"]) * factor)
    assert verdict(statement) == FAILS


MECHANISMS = ["sparse vector", "open threshold", "stable release", "gnmax", "confident gnmax", "gate"]
MECHANISMS += ["gnmax labels", "confident labels", "adaptive threshold"]


@pytest.mark.parametrize("name", [*MECHANISMS, "confirm"])
def test_a_mechanism_spends_what_tacit_says_and_no_less(name):
    """The checker's δ is Tacit's to within half a percent."""
    statement = cases.statement(name)
    [part] = claim_of(statement)["inputs"]["parts"]
    spent = Fraction(cases._spent(part))
    part["delta"] = str(spent)
    assert verdict(statement) == FOLLOWS
    part["delta"] = str(spent * Fraction(995, 1000))
    assert verdict(statement) == FAILS


@pytest.mark.parametrize("change", [{"refusals": 41}, {"scale": Fraction(99, 100)}, {"threshold": -1}])
def test_less_noise_more_refusals_or_a_lower_threshold_cost_more_than_is_stated(change):
    """For an open threshold, of which the certificate states the least noise and the least threshold."""
    statement = cases.statement("open threshold")
    [part] = claim_of(statement)["inputs"]["parts"]
    assert part["refusals"] == 40
    part |= {
        "refusals": change.get("refusals", 40),
        "scale": str(cases.exact(part["scale"]) * change.get("scale", 1)),
        "threshold": part["threshold"] + change.get("threshold", 0),
    }
    assert verdict(statement) == FAILS


@pytest.mark.parametrize(
    ("epsilon", "delta", "refusals"), [(1.0, 1e-5, 2), (4.0, 1e-9, 100), (0.25, 1e-6, 600), (30.0, 1e-5, 3)]
)
def test_the_price_of_an_open_threshold_is_the_same_to_nine_digits(epsilon, delta, refusals):
    mechanism = SparseVector(epsilon=epsilon, delta=delta, refusals=refusals)
    scale, threshold = mechanism.scale, mechanism.threshold
    spent = tacit_check.open_threshold(Fraction(epsilon), Fraction(scale), threshold, refusals)
    assert mechanism.delta_spent * (1 - 1e-9) < spent <= mechanism.delta


@pytest.mark.parametrize(("epsilon", "answers", "tests"), [(4.0, 4, 0), (1.0, 20, 40), (0.25, 30, 0), (4.0, 2000, 0)])
def test_the_price_of_labels_is_the_same_to_nine_digits(epsilon, answers, tests):
    """Of noise up to 90, and of cells of one threshold."""
    sigma = labels_sigma(epsilon, 1e-5, answers=answers, tests=tests, ratio=3.0)
    asked = {"sigma": sigma, "answers": answers, "test_sigma": 3 * sigma, "tests": tests}
    order = labels_order(epsilon, **asked)
    stated = (Fraction(sigma), answers, tests, Fraction(3 * sigma), Fraction(order))
    spent, found = labels_delta(epsilon, **asked), tacit_check.gnmax_labels(Fraction(epsilon), *stated)
    assert spent * (1 - 1e-8) < found <= spent


@pytest.mark.parametrize("change", [{"sigma": Fraction(99, 100)}, {"answers": 26}, {"order": 2}, {"order": 0.5}])
def test_less_noise_more_answers_or_a_worse_order_cost_more_than_is_stated(change):
    statement = cases.statement("gnmax labels")
    [part] = claim_of(statement)["inputs"]["parts"]
    assert part["mechanism"] == "gnmax labels"
    for key, value in change.items():
        part[key] = value if key == "answers" else str(cases.exact(part[key]) * Fraction(value))
    assert verdict(statement) == FAILS


@pytest.mark.parametrize("change", [{"sigma": 20001}, {"order": "1/3"}, {"order": 1000}, {"order": "1/2048"}])
def test_labels_that_would_take_long_are_not_checkable(change):
    statement = cases.statement("gnmax labels")
    [part] = claim_of(statement)["inputs"]["parts"]
    part |= change
    assert verdict(statement) == ELSEWHERE


def test_more_refusals_than_can_be_added_up_in_ten_seconds_are_not_checkable():
    statement = cases.statement("open threshold")
    [part] = claim_of(statement)["inputs"]["parts"]
    part |= {"refusals": 10**6, "scale": "100000", "threshold": 10**6}
    assert verdict(statement) == ELSEWHERE


def test_a_threshold_beyond_all_noise_gets_a_verdict():
    """A chance of 10^(−4·10¹³) is no fraction that can be written."""
    statement = cases.statement("fit")
    [part] = [part for part in claim_of(statement)["inputs"]["parts"] if part["mechanism"] == "labels found"]
    part |= {"threshold": 10**12, "scale": "1/100"}
    assert verdict(statement) == FAILS  # of so little noise
    part |= {"epsilon": 700, "scale": "1/100"}
    assert verdict(statement) == FAILS  # of so large an ε


def test_an_epsilon_that_tacit_grants_and_the_checker_does_not_compute_is_not_checkable():
    statement = cases.statement("open threshold")
    [part] = claim_of(statement)["inputs"]["parts"]
    part["epsilon"] = 10_000
    assert verdict(statement) == ELSEWHERE


def test_classes_found_with_noise_cost_what_tacit_says():
    statement = cases.statement("fit")
    parts = {part["mechanism"]: part for part in claim_of(statement)["inputs"]["parts"]}
    assert set(parts) == {"gnmax labels", "laplace", "labels found"}
    found = parts["labels found"]
    found["delta"] = str(Fraction(cases._spent(found)) * (1 + Fraction(1, 10**12)))
    assert verdict(statement) == FOLLOWS
    found["delta"] = str(Fraction(cases._spent(found)) * Fraction(995, 1000))
    assert verdict(statement) == FAILS
    found["delta"] = "1/100"
    assert verdict(statement) == FAILS  # the parts together exceed δ


def test_laplace_noise_of_a_smaller_scale_is_refused():
    statement = cases.statement("fit")
    [part] = [part for part in claim_of(statement)["inputs"]["parts"] if part["mechanism"] == "laplace"]
    part["scale"] = str(cases.exact(part["sensitivity"]) / cases.exact(part["epsilon"]))
    assert verdict(statement) == FOLLOWS
    part["scale"] = str(cases.exact(part["scale"]) * Fraction(995, 1000))
    assert verdict(statement) == FAILS


SAMPLED = [
    name for name in cases.MADE if name.startswith("audit") or name in ("identification", "gallery", "posterior")
]


@pytest.mark.parametrize("name", cases.MADE)
def test_a_failure_probability_is_stated_where_there_are_samples_and_only_there(name):
    statement = cases.statement(name)
    claim = claim_of(statement)
    if name in SAMPLED:
        stated = cases.exact(claim["failure_probability"])
        claim["failure_probability"] = None
        assert verdict(statement) == FAILS
        claim["failure_probability"] = str(stated / 2)
        if "failure_probability" in claim["inputs"]:
            assert verdict(statement) == FAILS  # the limit needs more than is stated
            claim["inputs"]["failure_probability"] = str(stated / 2)
        assert verdict(statement) == FAILS
    else:
        claim["failure_probability"] = "1/20"
        assert verdict(statement) == FAILS


@pytest.mark.parametrize("name", cases.MADE)
def test_the_other_side_the_theorem_and_the_rule(name):
    statement = cases.statement(name)
    claim = claim_of(statement)
    side = claim["claimed"]["side"]
    claim["claimed"]["side"] = "at least" if side == "at most" else "at most"
    assert verdict(statement) == FAILS
    claim["claimed"]["side"] = side
    for change in ({"name": "tacit.theory.gate.gates_delta"}, {"version": 2}):
        other = copy.deepcopy(statement)
        claim_of(other)["theorem"][0] |= change
        assert verdict(other) == ELSEWHERE
    other = copy.deepcopy(statement)
    claim_of(other)["theorem"] = []
    assert verdict(other) == ELSEWHERE
    for rule in {*tacit_check.RULES, "another rule"} - {claim["rule"]}:
        other = copy.deepcopy(statement)
        claim_of(other)["rule"] = rule
        if {rule, claim["rule"]} != {"private answers", "one of several mechanisms"} or len(
            claim["inputs"]["parts"]
        ) > 1:
            assert verdict(other) != FOLLOWS or rule == "one of several mechanisms"


def leaves(value, path=()):
    """Where the numbers of the inputs stand; of lists, whose entries are all treated alike, the first and the last."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from leaves(entry, (*path, name))
    elif isinstance(value, list):
        for place in sorted({0, len(value) - 1}):
            yield from leaves(value[place], (*path, place))
    elif isinstance(value, int) or (value and "0x" in value) or (value or "").lstrip("-").replace("/", "").isdigit():
        yield path


def changes(value):
    """A number in both directions, by a unit, by a percent and by far."""
    if isinstance(value, int):
        return {value + 1, value - 1, value * 101 // 100, value * 99 // 100, -value, 10 * value, 0, value // 2}
    found = cases.exact(value)
    factors = (Fraction(101, 100), Fraction(99, 100), Fraction(-1), Fraction(10), Fraction(1, 2), Fraction(0))
    return {str(found * factor) for factor in factors}


@pytest.mark.parametrize("name", cases.MADE)
def test_whatever_input_is_changed_only_what_is_true_follows(name):
    """Each number in turn; where the checker still says "follows", Tacit's own theorems prove the claim, too."""
    original = cases.statement(name)
    assert cases.proven(claim_of(original)) is not None
    refused = total = 0
    paths, stored = list(leaves(claim_of(original)["inputs"])), pickle.dumps(original)
    every = {"gate": 3, "confirm": 3, "plan": 3, "sparse vector": 2, "open threshold": 2}.get(name, 1)  # slow
    for path in paths[:: 2 if every == 3 else 1]:
        here = claim_of(original)["inputs"]
        for step in path:
            here = here[step]
        for changed in sorted(changes(here) - {here}, key=str)[::every]:
            statement = pickle.loads(stored)  # noqa: S301 — our own bytes
            place = claim_of(statement)["inputs"]
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = changed
            total += 1
            if verdict(statement) != FOLLOWS:
                refused += 1
                continue
            claim = claim_of(statement)
            bound, value = cases.proven(claim), cases.real(claim["claimed"]["value"])
            assert bound is not None, (path, changed)
            slack = 1 + 1e-6 if claim["claimed"]["side"] == "at most" else 1 - 1e-6
            assert bound <= value * slack if slack > 1 else bound >= value * slack, (path, changed, bound, value)
    assert refused >= total / 5


def test_broken_certificates_end_in_one_line():
    said, bad = fuzz_checker.fuzzed(600, seed=1)
    assert not bad
    assert said["refused"] > 200
    assert said["does not follow"] > 5


def test_a_claim_beyond_all_floats_gets_a_verdict():
    """It says next to nothing; most of them follow, and are printed."""
    found = []
    for name in cases.MADE:
        statement = cases.statement(name)
        claimed = claim_of(statement)["claimed"]
        claimed["value"] = str((1 if claimed["side"] == "at most" else -1) * 10**399)
        found.append(verdict(statement))
    assert "refused" not in found
    assert found.count(FOLLOWS) > len(found) / 2


def test_coins_are_tossed_again_in_one_of_the_cases():
    inputs = claim_of(cases.statement("audit of many outputs, coins tossed again"))["inputs"]
    assert tacit_check.fair_part([tuple(cell) for cell in inputs["cells"]], inputs["seed"])[1] == 1
    inputs = claim_of(cases.statement("audit of many outputs"))["inputs"]
    assert tacit_check.fair_part([tuple(cell) for cell in inputs["cells"]], inputs["seed"])[1] == 0


def test_counts_that_no_fair_coin_gave_are_not_pairs():
    statement = cases.statement("audit of pairs")
    claim_of(statement)["inputs"]["cells"] = [[1000, 10], [1000, 10]]
    claim_of(statement)["inputs"]["variation"] = claim_of(statement)["inputs"]["squared"] = 1
    claim_of(statement)["claimed"]["value"] = 1
    assert verdict(statement) == FAILS


def test_a_table_that_confirms_is_not_called_a_gate():
    """It releases no label of its own accord, which is cheaper: the sentence says which of the two it is about."""
    statement = cases.statement("confirm")
    [part] = claim_of(statement)["inputs"]["parts"]
    part["table"] = [chance for chance in part["table"] if chance <= tacit_check.ONE // 2]
    [(found, sentence, _)] = tacit_check.check(json.dumps(statement).encode())
    assert found == FOLLOWS
    assert "by confirm." in sentence
    part["mechanism"] = "gate"
    assert verdict(statement) == FAILS


def test_a_changed_label_changes_two_counts():
    statement = cases.statement("fit")
    claim_of(statement)["inputs"]["neighbours"] = "one label changed"
    assert verdict(statement) == FAILS


def test_entries_about_other_neighbours_do_not_add_up():
    statement = cases.statement("ledger")
    claim_of(statement)["inputs"]["entries"][0]["about"] = "one label changed"
    assert verdict(statement) == FAILS


def test_a_claim_without_evidence_is_not_checkable_and_does_not_pass(tmp_path):
    statement = cases.statement("audit")
    claim_of(statement).update(rule=None, inputs=None)
    assert verdict(statement) == ELSEWHERE
    (tmp_path / "certificate.json").write_text(json.dumps(statement))
    assert ran(tmp_path / "certificate.json").returncode == 1


def ran(*arguments):
    command = [sys.executable, "-I", str(CHECKER), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_program_alone_says_what_follows(tmp_path):
    good, bad = cases.statement("audit"), cases.statement("audit")
    claim_of(good)["statement"] = "\x1b[31m everything is private"
    claim_of(bad)["claimed"]["value"] = "1/100"
    for name, statement in (("good", good), ("bad", bad)):
        (tmp_path / name).write_text(json.dumps(statement))
    found = ran(tmp_path / "good")
    assert found.returncode == 0
    assert "1. follows: advantage" in found.stdout
    assert "\x1b" not in found.stdout
    found = ran(tmp_path / "bad")
    assert found.returncode == 1
    assert "1. does not follow" in found.stdout
    found = ran(tmp_path / "none")
    assert (found.returncode, found.stdout, found.stderr.count("\n")) == (2, "", 1)
    assert ran().returncode == 2


def test_an_envelope_is_opened_and_one_in_another_is_not():
    payload = json.dumps(cases.statement("audit")).encode()

    def envelope(inner):
        found = {"payloadType": "application/vnd.in-toto+json", "payload": base64.b64encode(inner).decode()}
        return json.dumps({**found, "signatures": []}).encode()

    [(found, _, _)] = tacit_check.check(envelope(payload))
    assert found == FOLLOWS
    with pytest.raises(tacit_check.BadFileError):
        tacit_check.check(envelope(envelope(payload)))


def hostile():
    good = json.dumps(cases.statement("audit"))
    yield "nothing", b""
    yield "not text", b"\xff\xfe\x00"
    yield "a list", b"[]"
    yield "deep", b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    yield "deep lists", b"[" * 200_000
    yield "a key twice", good.replace('"rule": "audit"', '"rule": "audit", "rule": "audit"').encode()
    yield "a key more", good.replace('"rule": "audit"', '"rule": "audit", "extra": 1').encode()
    yield "not a number", good.replace('"loss": "joint"', '"loss": NaN').encode()
    yield "infinity", good.replace('"loss": "joint"', '"loss": -Infinity').encode()
    yield "a float", good.replace('"rule": "audit"', '"rule": 0.5').encode()
    yield "a huge integer", good.replace('"version": 1', f'"version": {"9" * 5000}').encode()
    yield "a huge exponent", good.replace('"loss": "joint"', '"loss": 1e999999999').encode()
    for bad in ("-1", '"5"', "5.0", "true", "null", "[]", "1" + "0" * 38):
        statement = cases.statement("audit")
        claim_of(statement)["inputs"]["cells"][0][0] = "HERE"
        yield f"a count of {bad}", json.dumps(statement).replace('"HERE"', bad).encode()
    for bad in ('"0x1p+99999"', '"0x1p+1024"', '"1/0"', '"nan"', '"inf"', '"1e5"', '" 1"', '"١"', '"0x2.0p+0"'):
        statement = cases.statement("audit")
        claim_of(statement)["inputs"]["squared"] = "HERE"
        yield f"a number of {bad}", json.dumps(statement).replace('"HERE"', bad).encode()
    for bad in ("0", "1", '"0x0.0p+0"', '"-1/2"', '"3/2"'):
        statement = cases.statement("audit")
        claim_of(statement)["failure_probability"] = "HERE"
        yield f"a chance of {bad}", json.dumps(statement).replace('"HERE"', bad).encode()
    statement = cases.statement("audit")
    statement["subject"] = [{"name": "x", "digest": {"sha256": "0" * 63}}]
    yield "a short hash", json.dumps(statement).encode()


@pytest.mark.parametrize("data", [pytest.param(data, id=what) for what, data in hostile()])
def test_hostile_files_end_in_one_line(data):
    with pytest.raises(tacit_check.BadFileError) as refused:
        tacit_check.check(data)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_huge_numbers_take_no_time():
    """A billion refusals, queries or rows end at once, or are checked."""
    for name, key, value in (
        ("sparse vector", "refusals", 10**9),
        ("sparse vector", "threshold", 10**12),
        ("stable release", "queries", 10**9),
        ("gnmax", "answers", 10**12),
        ("gnmax", "sigma", "1000000"),
        ("gnmax labels", "answers", 10**12),
        ("gnmax labels", "answers", 10**8),
        ("gnmax labels", "sigma", "1000000"),
        ("adaptive threshold", "budget", 2**59),
        ("adaptive threshold", "order", 10**7),
    ):
        statement = cases.statement(name)
        claim_of(statement)["inputs"]["parts"][0][key] = value
        assert verdict(statement) in ("refused", ELSEWHERE, FAILS, FOLLOWS)
    statement = cases.statement("audit")
    claim_of(statement)["inputs"]["cells"] = [[10**12, 10**12]] * 3
    assert verdict(statement) in (FOLLOWS, FAILS)


def test_it_needs_nothing_but_the_standard_library():
    source = CHECKER.read_text()
    assert "import tacit" not in source
    imported = {
        line.split()[1].partition(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))
    }
    assert imported <= set(sys.stdlib_module_names)


def test_it_can_be_read_in_an_hour():
    assert len(CHECKER.read_text().splitlines()) <= LINES


def test_no_error_exceeds_what_a_guess_without_the_release_has():
    for name in ("gallery", "posterior"):
        statement = cases.statement(name)
        claim = claim_of(statement)
        claim["inputs"]["variance"] = str(cases.exact(claim["inputs"]["variance"]) / 1000)
        claim["claimed"]["value"] = "11/10"
        assert verdict(statement) == FAILS


def test_no_order_of_the_values_proves_more_than_their_mean():
    """Sorted by halves, the winning bets come first and the losing ones are small."""
    statement = cases.statement("posterior")
    claim = claim_of(statement)
    claim["inputs"] |= {"values": ([1] * 487 + [0] * 513) * 2, "most": 1, "variance": 1, "radius": 0}
    claim["inputs"] |= {"release_variation": 0, "chain_variation": 0}
    for value, found in (("69/100", FAILS), ("1/100", FOLLOWS)):
        claim["claimed"]["value"] = value
        assert verdict(statement) == found


def test_a_ledger_is_about_neighbours_that_the_checker_knows_and_names():
    statement = cases.statement("ledger")
    [(_, sentence, _)] = tacit_check.check(json.dumps(statement).encode())
    assert "for data that differ by one record added or removed" in sentence
    inputs = claim_of(statement)["inputs"]
    for where in (inputs, *inputs["entries"]):
        where["about"] = "nothing at all"
    assert verdict(statement) == ELSEWHERE


def test_the_smallest_floats_are_read_exactly():
    assert tacit_check.number("0x1.8p-1074", "x", -1, 1) == Fraction(3, 2) / 2**1074
    assert tacit_check.number("-0x0.8p-1030", "x", -1, 1) == -Fraction(1, 2**1031)


def test_a_salt_is_hexadecimal():
    statement = cases.statement("audit")
    claim_of(statement)["inputs"]["cells"] = {"sha256": "0" * 64}
    opening = {"opened": [{"claim": 0, "input": "cells", "salt": "\ud800", "value": [[1, 1]]}]}
    with pytest.raises(tacit_check.BadFileError, match=r"salt must be text like \[0-9a-f\]\{64\}"):
        tacit_check.check(json.dumps(statement).encode(), json.dumps(opening).encode())


def test_values_that_were_sorted_prove_nothing():
    """Bets would win by the order alone; half a set of draws differs so much from the other with chance 2e^−32."""
    statement = cases.statement("posterior")
    claim = claim_of(statement)
    claim["inputs"]["values"] = [1] * 1000 + [0] * 1000
    assert verdict(statement) == FAILS
    claim["inputs"]["values"] = [1, 0] * 1000
    assert verdict(statement) == FOLLOWS


def test_numbers_whose_sum_would_take_hours_are_not_added():
    statement = cases.statement("ledger")
    inputs = claim_of(statement)["inputs"]
    entry = inputs["entries"][0]
    inputs["entries"] = [{**entry, "epsilon": f"1/{10**398 + place}", "delta": 0} for place in range(4000)]
    assert verdict(statement) == ELSEWHERE


def test_what_json_can_just_hold_is_refused_in_one_line():
    """Nested nearly as deeply as Python allows: it was read, and could not be shown."""
    for depth in range(900, 1010):
        with pytest.raises(tacit_check.BadFileError):
            tacit_check.check(('{"_type":' + "[" * depth + "]" * depth + "}").encode())
