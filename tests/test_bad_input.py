"""Hundreds of unusable values, at every public door: always one clear line, never a traceback, never acceptance."""

import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import tacit.audit
import tacit.learning
import tacit.theory.accounting
import tacit.theory.adaptive_threshold
import tacit.theory.certificates
import tacit.theory.confidence
import tacit.theory.densities
import tacit.theory.divergences
import tacit.theory.estimation
import tacit.theory.gate
import tacit.theory.label_moments
import tacit.theory.leakage
import tacit.theory.learnability
import tacit.theory.open_threshold
import tacit.theory.quantized
from tacit import Adversary, Assumption, Attack, Comparison, Guarantee, InputError, TacitError, demo
from tacit.core import validate
from tacit.learning.mechanisms import gate_design
from tacit.report import Figure, Report, Table
from tacit.runtime import entropy


class Unprintable:
    def __repr__(self):
        raise RuntimeError("no repr")


MASKED = np.ma.masked_array([1.0, 2.0], mask=[False, True])


def floats(least=-math.inf, most=math.inf):
    """Numbers of a range: its ends, what lies beside them, and the largest and smallest that there are."""
    ends = [near for end in (least, most) for near in (end, math.nextafter(end, least), math.nextafter(end, most))]
    known = [-math.inf, -1e308, -1.5, -1.0, -5e-324, -0.0, 0.0, 5e-324, 0.3, 1.0, 2.0, 1e308, math.inf, *ends]
    return [one for one in known if least <= one <= most] + [math.nan] * (least == -math.inf and most == math.inf)


def without_none(values):
    return [one for one in values if one is not None]


foreign = [None, False, True, b"", b"a\xff", 0j, 1 + 2j, complex(math.nan, math.inf), object(), Unprintable(), print]
foreign += [set(), {1, 2}]
texts = ["", "a", "1", "0.5", "nan", "é \n\0", "long " * 200]
integers = [-(10**30), -1, 0, 1, 7, 2**63]
lists_of_floats = [[1.0], [0.5, math.nan], [math.inf]]
not_text = foreign + floats() + integers + [[], [""], ["", "b"], " ", "\n\t", ""]
not_number = foreign + texts + lists_of_floats + [[], math.nan, np.array([1.0, 2.0])]
not_a_list_of_records = foreign + texts[1:] + floats() + lists_of_floats + [["a"], ["", 1.0]]
negative = floats(most=-1e-300)
above_one = floats(least=math.nextafter(1, 2))
infinite = [math.inf, -math.inf]
not_probability = not_number + infinite + floats(most=0.0) + floats(least=1.0) + [10**400]
not_positive = not_number + infinite + floats(most=0.0) + [10**400]
not_count = not_number + floats() + [-1, -2, -(10**30), Fraction(1, 2), 10**400]
not_detail = (
    foreign
    + texts
    + floats()
    + [[], [1, 2]]
    + [{"a": np.zeros(3)}, {1: 2}, {"$float": "inf"}, {"a": {"b": object()}}, {"a": {1, 2}}, {"a": Fraction(1, 3)}]
)
not_array = [one for one in foreign if not isinstance(one, bool)] + texts
not_array += [[], [[]], [1.0, math.nan], [[1.0, 2.0], [3.0]], ["a"], [None]]
not_array += [np.array(["x"]), np.zeros((0, 3)), MASKED]
not_finite_array = [*not_array, [math.inf], *infinite]
not_distance = not_finite_array + negative + [[-1.0], [1.0, -1e-300], [-math.inf]]
not_share = not_distance + above_one
not_rows = [*not_finite_array, [1.0, 2.0], [[1.0, 2.0]], np.zeros((2, 2, 2))]

GUARANTEE = Guarantee(quantity="q", side="at_least", value=1, adversary=Adversary.ANY, theorem="t", assumptions=())
ATTACK = Attack(quantity="q", value=2, low=1, high=3, failure_probability=0.1, adversary=Adversary.ANY, method="m")
FIGURE = Figure(title="t", caption="c", alternative="a", svg="<svg/>")
TABLE = tacit.theory.densities.DensityTable(
    slope=1.0,
    points=np.array([1.0, 2.0]),
    chi_roots=np.ones((2, 2)),
    hellinger_roots=np.ones(2),
    total_variations=np.ones(2),
    small=np.ones((2, 4)),
)

GATE = gate_design.find_design(4.0, 1e-5, refusals=1, labels=True)
GATE_CERTIFICATE = GATE.certificate()

not_counts = [*not_array, [1, 2], [[1.0, 2.0]], [[True]], 3, [[[1]]]]
ACCOUNTING = {
    "costs": [*not_distance, [[1.0]]],
    "epsilon": not_number + negative + infinite + [1e5],
    "delta": not_probability,
    "failure_probability": not_probability,
    "step_epsilon": not_positive,
    "scale": [*not_positive, 1e-05],
    "sigma": [*not_positive, 2.0**41],
    "test_sigma": not_positive,
    "sensitivity": not_positive,
    "length": not_positive,
    "changed": not_positive,
    "reach": [*not_count, 0, 2**21],
    "ratio": [*not_positive, 1000.0],
    "agreement": not_number + floats(most=0.5) + above_one,
    "distance": not_count,
    "threshold": not_count,
    "tests": not_count,
    **{key: [*not_count, 0] for key in ("steps", "refusals", "queries", "answers", "quota", "sums")},
}
ADAPTIVE = {
    **ACCOUNTING,
    "order": [*not_positive, 1e-4, 1e9],
    "budget": not_number + negative + infinite + [1e7],
    "labels": not_number + negative + infinite + above_one,
    "chance": [*not_probability, 1e-30],
}
not_error = not_number + infinite + negative + above_one
LEARNABILITY = {
    **ACCOUNTING,
    "error": not_error,
    "excess": not_number + infinite + negative + above_one,
    "best_error": [*not_error, 1.0],
    "wrong_labels": [*not_count, 5],
    "outvoted": [*not_count, 3],
    "vc_dimension": [*not_count, 0],
    **{key: [*not_count, 0] for key in ("points", "records", "teachers")},
    "queries": ACCOUNTING["queries"] + [10**9],
    "classes": [*not_count, 0, 1],
}

not_unit = not_number + infinite + negative + above_one
not_amount = not_number + infinite + negative + [10**400]
LEAKAGE = {
    **dict.fromkeys(("squared", "advantage", "bias", "plug_in"), not_unit),
    "information": not_number + infinite + negative + [0.6932],
    "false_positive_rate": not_share,
    "epsilon": [*not_amount, 701.0],
    "delta": not_unit,
    "toward": [*not_text, "nearest"],
    "positives": [*not_count, 0],
    "negatives": [*not_count, 0],
    "failure_probability": not_probability,
    "paired": texts + integers + [None],
    "correct": [*not_count, 9],
    "empirical_loss": not_unit,
    "count": [*not_count, 0],
    "alphabet": [*not_count, 0],
    "neurons": [*not_count, 0],
    **dict.fromkeys(("barron", "diameter", "constant"), not_amount),
    "width": not_positive,
    "noise": [*not_positive, 0.01],
    "step": [*not_positive, 3.0],
    "dimensions": [*not_count, 0],
    "gradient": [*not_finite_array, [1e200]],
}
LIMIT = {"plug_in": 0.1, "positives": 3, "negatives": 4, "failure_probability": 0.1, "paired": False}
not_column = [one for one in foreign if not isinstance(one, set)] + texts + floats()
not_column += [[], [1.0, math.nan, 0.0, 1.0], ["a", 1, 2, 3], [None] * 4, [[1], [2], [3], [4]], MASKED]
TALLY = tacit.audit.Tally().add([0, 1, 0, 1], [1, 2, 2, 2])
LOGISTIC = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
CERTIFY = {
    "failure_probability": not_probability,
    "loss": [*not_text, "hinge"],
    "method": [*not_text, "noisy", "lipschitz", "guess"],
    "form": [*not_text, "loose"],
    "sampling": [*not_text, "all"],
    "assume_max_slope": without_none(not_number) + negative + [1.0],
    "alphabet": without_none(LEAKAGE["alphabet"]),
    "name": not_text,
}
CERTIFIED = {
    "failure_probability": 0.1,
    "loss": "log",
    "method": "discrete",
    "form": "sharp",
    "sampling": "pairs",
    "assume_max_slope": None,
    "alphabet": None,
}

DOORS: list[tuple[Callable[..., Any], dict[str, Any], dict[str, list[Any]]]] = [
    (Assumption, {"text": "t", "checked_by": "code"}, {"text": not_text, "checked_by": [*not_text, "nobody"]}),
    (Adversary, {"kind": "prior", "scope": "s"}, {"kind": [*not_text, "all"], "scope": foreign + floats()}),
    (Adversary, {"kind": "any"}, {"scope": texts[1:]}),
    (
        Guarantee,
        {
            "quantity": "q",
            "side": "at_least",
            "value": 1.0,
            "adversary": Adversary.ANY,
            "theorem": "t",
            "assumptions": (),
            "failure_probability": 0.0,
            "detail": {},
        },
        {
            "quantity": not_text,
            "side": [*not_text, "above"],
            "value": not_number,
            "adversary": [*not_text, "any"],
            "theorem": not_text,
            "assumptions": not_a_list_of_records,
            "failure_probability": not_number + negative + infinite + floats(least=1.0),
            "detail": not_detail,
        },
    ),
    (
        Attack,
        {
            "quantity": "q",
            "value": 2,
            "low": 1,
            "high": 3,
            "failure_probability": 0.1,
            "adversary": Adversary.ANY,
            "method": "m",
        },
        {
            "quantity": not_text,
            "value": not_number + floats(most=0.999) + floats(least=3.001),
            "low": not_number + floats(least=2.001),
            "high": not_number + floats(most=1.999),
            "failure_probability": not_number + infinite + floats(most=-1e-9) + floats(least=1.0),
            "adversary": [*not_text, "any"],
            "method": not_text,
        },
    ),
    (
        Comparison,
        {"guarantee": GUARANTEE, "attacks": [ATTACK]},
        {"guarantee": not_text, "attacks": [one for one in not_text if not (isinstance(one, list) and not one)]},
    ),
    (
        Figure,
        {"title": "t", "caption": "c", "alternative": "a", "svg": "<svg/>"},
        {"title": not_text, "caption": not_text, "alternative": not_text, "svg": not_text},
    ),
    (
        Report,
        {
            "command": "c",
            "title": "t",
            "summary": ("s",),
            "comparisons": (Comparison(guarantee=GUARANTEE),),
            "figures": (FIGURE,),
            "tables": (),
            "detail": {},
        },
        {
            "command": not_text,
            "title": not_text,
            "summary": foreign + texts + lists_of_floats,
            "comparisons": [*not_a_list_of_records, ()],
            "figures": not_a_list_of_records,
            "tables": not_a_list_of_records,
            "detail": not_detail,
        },
    ),
    (Guarantee.from_dict, {"data": GUARANTEE.to_dict()}, {"data": [*not_text, {}, {"a": 1.0}]}),
    (Guarantee.from_json, {"source": GUARANTEE.to_json()}, {"source": foreign + texts + floats()}),
    (demo.demo, {"seed": 0}, {"seed": not_count}),
    (entropy.discrete_laplace, {"scale": 1.0, "size": 1}, {"scale": not_positive, "size": [*not_count, 0]}),
    (entropy.discrete_gaussian, {"scale": 1.0, "size": 1}, {"scale": not_positive, "size": [*not_count, 0]}),
    (
        entropy.bernoulli,
        {"probability": Fraction(1, 2), "size": 1},
        {"probability": not_number + floats() + [Fraction(3, 2)] + [-1], "size": not_count},
    ),
    (tacit.theory.divergences.repeated_scale, {"releases": 2}, {"releases": [*not_count, 0]}),
    (tacit.theory.divergences.gaussian_chi_square, {"distance": 1.0}, {"distance": not_distance}),
    (tacit.theory.divergences.gaussian_total_variation, {"distance": 1.0}, {"distance": not_distance}),
    (
        tacit.theory.divergences.gaussian_delta,
        {"epsilon": 1.0, "distance": 1.0},
        {"epsilon": not_number + negative + infinite, "distance": not_number + negative + infinite},
    ),
    (
        tacit.theory.divergences.gaussian_epsilon,
        {"delta": 1e-5, "distance": 1.0},
        {"delta": not_probability, "distance": not_number + negative + infinite + [1e300]},
    ),
    *(
        (function, {"shift": [1.0], size: 1.0}, {"shift": not_finite_array, size: not_positive})
        for function, size in (
            (tacit.theory.divergences.laplace_chi_square, "scale"),
            (tacit.theory.divergences.laplace_total_variation, "scale"),
            (tacit.theory.divergences.uniform_total_variation, "width"),
        )
    ),
    *(
        (
            function,
            {"features": [0.3], "shift": [1.0], "kind": "laplace", "size": 1.0, "step": 0.5, "error": 0.0},
            {
                "features": [*not_finite_array, np.zeros((2, 3))],
                "shift": not_finite_array,
                "kind": [*not_text, "cauchy"],
                "size": not_positive,
                "step": not_positive,
                "error": not_distance,
            },
        )
        for function in (tacit.theory.quantized.quantized_chi_square, tacit.theory.quantized.quantized_total_variation)
    ),
    *(
        (function, {"log_ratio": 1.0}, {"log_ratio": not_distance})
        for function in (
            tacit.theory.densities.bounded_ratio_chi_square,
            tacit.theory.densities.bounded_ratio_hellinger,
            tacit.theory.densities.bounded_ratio_total_variation,
        )
    ),
    *(
        (
            function,
            {"shift": [1.0], "table": TABLE, "error": 0.0},
            {"shift": not_finite_array, "table": foreign, "error": [*not_distance, [0.0, 0.0]]},
        )
        for function in (tacit.theory.densities.density_chi_square, tacit.theory.densities.density_total_variation)
    ),
    *(
        (
            function,
            {"log_ratios": [0.1, -0.1], "most": 0.2, "failure_probability": 0.1, "error": 0.0},
            {
                "log_ratios": [*not_finite_array, [[0.1]], [0.3]],
                "most": not_number + negative + infinite,
                "failure_probability": not_probability,
                "error": [*not_distance, [0.0]],
            },
        )
        for function in (tacit.theory.densities.sampled_chi_square, tacit.theory.densities.sampled_total_variation)
    ),
    *(
        (
            function,
            {"successes": 1, "trials": 3, "failure_probability": 0.1},
            {
                "successes": [*not_count, 4, 5, 2**63, 10**30],
                "trials": [*not_count, 0],
                "failure_probability": not_probability,
            },
        )
        for function in (tacit.theory.confidence.binomial_lower, tacit.theory.confidence.binomial_upper)
    ),
    *(
        (
            function,
            {"squares": 30, "draws": 3, "failure_probability": 0.1},
            {
                "squares": not_count,
                "draws": [*not_count, 0],
                "failure_probability": not_probability,
            },
        )
        for function in (tacit.theory.confidence.gaussian_scale_lower, tacit.theory.confidence.gaussian_scale_upper)
    ),
    *(
        (
            function,
            {"mean": 0.5, "count": 3, "failure_probability": 0.1},
            {
                "mean": not_number + negative + infinite + floats(least=1.001),
                "count": [*not_count, 0],
                "failure_probability": not_probability,
            },
        )
        for function in (tacit.theory.confidence.bounded_mean_lower, tacit.theory.confidence.bounded_mean_upper)
    ),
    (
        tacit.theory.estimation.hcr_variance,
        {"shift": [1.0, 2.0], "chi_square": [1.0, 1.0]},
        {
            "shift": [*not_finite_array, [1.0, 2.0, 3.0]],
            "chi_square": not_array + negative,
        },
    ),
    (tacit.theory.estimation.two_point_success, {"total_variation": 0.5}, {"total_variation": not_share}),
    (
        tacit.theory.estimation.two_point_mse,
        {"shift": [1.0, 2.0], "total_variation": [0.5, 0.5]},
        {"shift": [*not_finite_array, [1.0, 2.0, 3.0]], "total_variation": not_share},
    ),
    (
        tacit.theory.estimation.two_point_bayes_mse,
        {"shift": [1.0, 2.0], "distance": [0.5, 0.5]},
        {"shift": [*not_finite_array, [1.0, 2.0, 3.0]], "distance": not_distance},
    ),
    (
        tacit.theory.estimation.two_point_bayes_error,
        {"log_odds": [1.0, -2.0], "distance": [0.5, 0.5]},
        {"log_odds": [*not_finite_array, [1.0, 2.0, 3.0]], "distance": not_distance},
    ),
    (
        tacit.theory.estimation.two_point_error,
        {"log_odds": [1.0, -2.0], "total_variation": [0.5, 0.5]},
        {"log_odds": [*not_finite_array, [1.0, 2.0, 3.0]], "total_variation": not_share},
    ),
    (
        tacit.theory.estimation.gallery_identification,
        {"features": np.eye(2), "sigma": 1.0, "draws": 10, "failure_probability": 0.1, "seed": 0},
        {
            "features": not_rows,
            "sigma": not_positive,
            "draws": [*not_count, 0],
            "failure_probability": not_probability,
            "seed": not_count,
        },
    ),
    *[
        (
            function,
            {
                "features": np.eye(2),
                "inputs": np.eye(2),
                "sigma": 1.0,
                "draws": 10,
                "failure_probability": 0.1,
                "seed": 0,
            },
            {
                "features": not_rows,
                "inputs": [*not_rows, np.eye(3), 1e200 * np.eye(2)],
                "sigma": not_positive,
                "draws": [*not_count, 0],
                "failure_probability": not_probability,
                "seed": not_count,
            },
        )
        for function in (tacit.theory.estimation.gallery_mse, tacit.theory.estimation.gallery_coordinate_mse)
    ],
    *(
        (getattr(tacit.theory.leakage, name), good, {key: LEAKAGE[key] for key in good})
        for name, good in {
            "advantage_upper": {"squared": 0.1},
            "information_upper": {"squared": 0.1},
            "squared_from_information": {"information": 0.1},
            "roc_upper": {"false_positive_rate": [0.1], "squared": 0.1, "advantage": 0.2},
            "auc_upper": {"squared": 0.1, "advantage": 0.2},
            "hockey_stick_upper": {"epsilon": 1.0, "squared": 0.1, "advantage": 0.2},
            "private_roc": {"false_positive_rate": [0.1], "epsilon": 1.0, "delta": 1e-5},
            "private_advantage": {"epsilon": 1.0, "delta": 1e-5},
            "private_squared": {"epsilon": 1.0, "delta": 1e-5},
            "private_information": {"epsilon": 1.0, "delta": 1e-5},
            "private_auc": {"epsilon": 1.0, "delta": 1e-5},
            "coin_information": {"bias": 0.1, "toward": "up"},
        }.items()
    ),
    *(
        (getattr(tacit.theory.certificates, name), good, {key: LEAKAGE[key] for key in good})
        for name, good in {
            **dict.fromkeys(("squared_closed", "squared_sharp", "log_closed", "log_sharp", "variation_upper"), LIMIT),
            "variation_exact": {
                "correct": 6,
                "positives": 4,
                "negatives": 4,
                "failure_probability": 0.1,
                "paired": True,
            },
            "hockey_stick_limit": {
                "plug_in": 0.1,
                "epsilon": 1.0,
                "positives": 3,
                "negatives": 4,
                "failure_probability": 0.1,
            },
            "printed_squared_loss": {"empirical_loss": 0.9, "count": 100, "failure_probability": 0.1},
            "printed_log_loss": {"empirical_loss": 0.6, "count": 100, "alphabet": 2, "failure_probability": 0.1},
            "printed_network_loss": {
                "empirical_loss": 0.9,
                "count": 100,
                "neurons": 10,
                "barron": 0.1,
                "diameter": 6.0,
                "failure_probability": 0.1,
            },
            "lipschitz_excess": {"constant": 1.0, "width": 0.1},
            "tanh_barron": {"gradient": [0.3, -0.1]},
            "binning_root": {"step": 0.1, "noise": 1.0, "dimensions": 2},
            "smoothing_root": {"step": 0.1, "noise": 1.0, "dimensions": 2},
            "smoothing_variation": {"step": 0.1, "noise": 1.0, "dimensions": 2},
        }.items()
    ),
    (
        tacit.theory.certificates.characteristic_limit,
        {"frequency": 1.0, "noise": 1.0, "count": 100, "failure_probability": 0.1},
        {
            **{key: LEAKAGE[key] for key in ("count", "failure_probability")},
            **dict.fromkeys(("frequency", "noise"), not_positive),
        },
    ),
    (
        tacit.audit.certify,
        {"secret": [0, 1, 0, 1], "output": [1, 2, 2, 2], "weights": None, "name": "n", **CERTIFIED},
        {
            "secret": [*not_column, [0, 1, 2, 1], [1, 1, 1, 1], [0, 1]],
            "output": [*not_column, [1, 2], {}, {"a": [1, 2]}],
            "weights": [*without_none(not_column), [0.5, 1, 1, 1]],
            **CERTIFY,
        },
    ),
    (
        tacit.audit.certify_classes,
        {
            "secret": [0, 1, 2, 1] * 2,
            "output": [1, 2, 2, 2] * 2,
            "failure_probability": 0.1,
            "name": "n",
            "about": "s",
        },
        {
            "secret": [*not_column, [1, 1, 1, 1], [0, 1]],
            "output": [*not_column, [1, 2], {}, {"a": [1, 2]}],
            "weights": [*without_none(not_column), [0.5, 1, 1, 1]],
            "failure_probability": not_probability,
            "name": not_text,
            "about": not_text,
        },
    ),
    (
        tacit.audit.certify_number,
        {
            "secret": [0, 1, 2, 1] * 2,
            "output": [1, 2, 2, 2] * 2,
            "secret_range": (0, 2),
            "failure_probability": 0.1,
            "name": "n",
        },
        {
            "secret": [*not_column, [1, 1, 1, 1], [0, 1], [0, 1, 2, 3], ["a", "b", "c", "d"]],
            "output": not_column,
            "secret_range": [*foreign, (1, 0), (0,), (0, math.inf), (0, "a"), "02"],
            "failure_probability": not_probability,
            "name": not_text,
        },
    ),
    (
        tacit.audit.one_per_group,
        {"groups": [0, 0, 1, 1]},
        {
            "groups": [one for one in not_column if not (isinstance(one, list) and not one)],
            "weights": without_none(not_column),
        },
    ),
    (
        tacit.audit.audit,
        {
            "secret": [0, 1, 0, 1],
            "output": [1, 2, 2, 2],
            "failure_probability": 0.1,
            "attacks": (),
            "require_advantage": 0.1,
        },
        {
            "secret": not_column,
            "failure_probability": not_probability,
            "attacks": foreign + texts + [["threshold"]],
            "require_advantage": [*without_none(not_unit), 0.0],
        },
    ),
    (
        tacit.audit.attempts,
        {
            "secret": [0, 1] * 100,
            "output": [1, 2, 2, 2] * 50,
            "certificate": tacit.audit.certify([0, 1] * 100, [1, 2, 2, 2] * 50, failure_probability=0.1),
            "noise": None,
            "learners": ["histogram"],
            "failure_probability": 0.1,
            "seed": 0,
        },
        {
            "secret": not_column,
            "output": not_column,
            "certificate": not_text,
            "noise": [0.1, 0.0],
            "learners": [["guess"]],
            "failure_probability": not_probability,
            "seed": not_count,
        },
    ),
    (
        tacit.audit.membership,
        {
            "model": LOGISTIC,
            "members": ([[0.0], [1.0]], [0, 1]),
            "non_members": ([[0.0], [1.0]], [0, 1]),
            "factory": None,
            "shadows": 16,
            "draws": 5,
            "seed": 0,
        },
        {
            "model": not_text,
            "members": [*not_text, ([[0.0]], [0, 1]), ([[0.0]], [7])],
            "non_members": [*not_text, ([], [])],
            "draws": [*without_none(not_count), 0],
            "seed": not_count,
        },
    ),
    (
        tacit.audit.certify_tally,
        {"tally": TALLY, "name": "n", **CERTIFIED},
        {"tally": foreign + floats(), **CERTIFY},
    ),
    (
        tacit.audit.certify_slices,
        {
            "secret": [0, 1, 0, 1],
            "output": [1, 2, 2, 2],
            "slices": ["a", "a", "b", "b"],
            "failure_probability": 0.1,
            "weights": None,
        },
        {
            "slices": [*not_column, ["a"]],
            "secret": not_column,
            "output": not_column,
            "failure_probability": not_probability,
            "weights": [*without_none(not_column), [1]],
        },
    ),
    (
        tacit.audit.certify_tallies,
        {"tallies": {"a": TALLY}, "failure_probability": 0.1},
        {"tallies": foreign + floats() + [{}], "failure_probability": not_probability},
    ),
    (
        tacit.audit.certify_network,
        {
            "empirical_loss": 0.9,
            "positives": 50,
            "negatives": 50,
            "neurons": 10,
            "barron": 0.1,
            "diameter": 6.0,
            "failure_probability": 0.1,
        },
        {
            **{key: LEAKAGE[key] for key in ("empirical_loss", "positives", "negatives", "neurons", "barron")},
            "diameter": LEAKAGE["diameter"],
            "failure_probability": not_probability,
        },
    ),
    (
        tacit.audit.Tally,
        {"noise": None, "width": None, "noise_added": None, "rows": None},
        {key: without_none(not_positive) for key in ("noise", "width", "noise_added")}
        | {"rows": [*without_none(not_count), 100]},
    ),
    (
        tacit.audit.privacy_curve,
        {"tally": TALLY, "failure_probability": 0.1, "epsilons": (0.0, 1.0)},
        {
            "tally": foreign + floats(),
            "failure_probability": not_probability,
            "epsilons": [*not_distance, [1.0, 0.5]],
        },
    ),
    (
        tacit.audit.ImpliedByDP,
        {"epsilon": 1.0, "delta": 1e-5},
        {"epsilon": LEAKAGE["epsilon"], "delta": LEAKAGE["delta"]},
    ),
    (
        tacit.audit.rows_needed,
        {"advantage": 0.3, "failure_probability": 0.1, "loss": "zero-one", "leaked": 0.0, "values": 2},
        {
            "loss": [*not_text, "log"],
            "advantage": [*not_unit, 0.0],
            "failure_probability": not_probability,
            "leaked": [*not_unit, 0.1],
            "values": [*not_count, 0],
        },
    ),
    *(
        (
            limit,
            {"values": [0.2, 0.4], "failure_probability": 0.1},
            {"values": [*not_share, [[0.5]]], "failure_probability": not_probability},
        )
        for limit in (tacit.theory.confidence.sampled_mean_lower, tacit.theory.confidence.sampled_mean_upper)
    ),
    *(
        (getattr(tacit.theory.accounting, name), good, {key: ACCOUNTING[key] for key in good})
        for name, good in {
            "basic_composition": {"costs": [1.0, 0.5]},
            "composition_delta": {"epsilon": 1.0, "step_epsilon": 0.5, "steps": 3},
            "laplace_scale": {"epsilon": 1.0, "sensitivity": 2},
            "replacement_delta": {"epsilon": 1.0, "delta": 1e-5},
            "lone_label_chance": {"threshold": 3, "scale": 2.0},
            "label_threshold": {"delta": 1e-5, "scale": 2.0, "changed": 1},
            "unstable_release": {"threshold": 3, "scale": 2.0},
            "sparse_vector_delta": {"epsilon": 1.0, "scale": 2.0, "threshold": 3, "refusals": 2},
            "sparse_vector_scale": {"epsilon": 1.0, "delta": 1e-5, "refusals": 2},
            "sparse_vector_threshold": {"epsilon": 1.0, "delta": 1e-5, "scale": 9.0, "refusals": 2},
            "sparse_vector_distance": {
                "scale": 2.0,
                "threshold": 3,
                "refusals": 2,
                "queries": 4,
                "failure_probability": 0.1,
            },
            "stable_teachers": {"distance": 10, "agreement": 0.9},
            "printed_scale": {"epsilon": 1.0, "delta": 1e-5, "refusals": 2},
            "printed_threshold": {"delta": 1e-5, "scale": 2.0, "queries": 4},
            "printed_teachers": {
                "delta": 1e-5,
                "scale": 2.0,
                "refusals": 2,
                "queries": 4,
                "failure_probability": 0.1,
            },
            "stable_release_delta": {"epsilon": 1.0, "scale": 2.0, "threshold": 3, "queries": 4},
            "stable_release_scale": {"epsilon": 1.0, "delta": 1e-5, "queries": 4},
            "stable_release_threshold": {"epsilon": 1.0, "delta": 1e-5, "scale": 9.0, "queries": 4},
            "gnmax_delta": {"epsilon": 1.0, "sigma": 5.0, "answers": 2, "test_sigma": 9.0, "tests": 3},
            "gnmax_sigma": {"epsilon": 1.0, "delta": 1e-5, "answers": 2, "tests": 3, "ratio": 2.0},
            "quota_delta": {"epsilon": 1.0, "sigma": 5.0, "quota": 3, "changed": 2},
            "quota_sigma": {"epsilon": 1.0, "delta": 1e-5, "quota": 3, "changed": 2},
            "clipped_sums_delta": {"epsilon": 1.0, "sigma": 5.0, "sums": 3, "reach": 2},
            "clipped_sums_sigma": {"epsilon": 1.0, "delta": 1e-5, "sums": 3, "reach": 2},
            "lattice_delta": {"epsilon": 1.0, "sigma": 5.0, "sensitivity": 2.0},
            "lattice_sigma": {"epsilon": 1.0, "delta": 1e-5, "sensitivity": 2.0},
            "sums_sensitivity": {"length": 5.0, "changed": 2},
        }.items()
    ),
    *(
        (getattr(tacit.theory.label_moments, name), good, {key: ACCOUNTING[key] for key in good if key in ACCOUNTING})
        for name, good in {
            "labels_delta": {"epsilon": 1.0, "sigma": 5.0, "answers": 20, "test_sigma": 9.0, "tests": 3},
            "labels_sigma": {"epsilon": 1.0, "delta": 1e-5, "answers": 20, "tests": 3, "ratio": 2.0},
        }.items()
    ),
    *(
        (getattr(tacit.theory.open_threshold, name), good, {key: ACCOUNTING[key] for key in good})
        for name, good in {
            "open_threshold_delta": {"epsilon": 1.0, "scale": 9.0, "threshold": 20, "refusals": 2},
            "open_threshold_scale": {"epsilon": 1.0, "delta": 1e-5, "refusals": 2},
            "open_threshold_votes": {"epsilon": 1.0, "delta": 1e-5, "scale": 20.0, "refusals": 2},
            "open_threshold_distance": {"scale": 9.0, "threshold": 20, "queries": 4, "failure_probability": 0.1},
            "telling_chance": {"scale": 9.0, "threshold": 20},
        }.items()
    ),
    *(
        (getattr(tacit.theory.adaptive_threshold, name), good, {key: ADAPTIVE[key] for key in good})
        for name, good in {
            "refusal_price": {"scale": 9.0, "order": 2.0},
            "least_scale": {"order": 2.0},
            "adaptive_threshold_delta": {"epsilon": 1.0, "order": 20.0, "budget": 3.0, "labels": 1e-7},
            "adaptive_threshold_budget": {"epsilon": 1.0, "delta": 1e-5, "order": 20.0},
            "adaptive_threshold_votes": {"chance": 1e-7, "scale": 9.0},
        }.items()
    ),
    *(
        (
            mechanism,
            {"epsilon": 1.0, "delta": 1e-5, **good},
            {"epsilon": not_positive, "delta": not_probability, **bad},
        )
        for mechanism, good, bad in (
            (
                tacit.learning.SparseVector,
                {"refusals": 2, "queries": 5, "variant": "faithful"},
                {"refusals": ACCOUNTING["refusals"], "queries": ACCOUNTING["queries"], "variant": not_text},
            ),
            (tacit.learning.StableRelease, {"queries": 2}, {"queries": ACCOUNTING["queries"]}),
            (
                tacit.learning.AdaptiveVector,
                {"queries": 9, "teachers": 20},
                {"queries": ACCOUNTING["queries"], "teachers": ACCOUNTING["queries"]},
            ),
            (
                tacit.learning.GNMax,
                {"queries": 2, "counts": True},
                {"queries": ACCOUNTING["queries"], "counts": texts + integers},
            ),
            (
                tacit.learning.VoteQuota,
                {"quota": 2, "rank": 3, "changed": 2, "counts": True},
                {
                    **dict.fromkeys(("quota", "rank", "changed"), ACCOUNTING["quota"]),
                    "counts": texts + integers,
                },
            ),
            (
                tacit.learning.ConfidentGNMax,
                {"queries": 3, "answers": 2, "threshold": 10, "ratio": 2.0, "counts": False},
                {
                    "queries": ACCOUNTING["queries"] + [1],
                    "answers": ACCOUNTING["answers"] + [4],
                    "threshold": ACCOUNTING["threshold"],
                    "ratio": ACCOUNTING["ratio"],
                    "counts": texts + integers,
                },
            ),
            *(
                (gate, {"refusals": 2}, {"refusals": ACCOUNTING["refusals"] + [1000]})
                for gate in (tacit.learning.Gate, tacit.learning.Confirm)
            ),
        )
    ),
    *(
        (
            function,
            {
                "epsilon": 4.0,
                "table": GATE.table if labels else GATE.leads[1],
                "refusals": 1,
                "certificate": GATE_CERTIFICATE,
            },
            {
                "epsilon": ACCOUNTING["epsilon"],
                "table": [*not_array, [0], [2**63], [0.5], (True,), range(3)],
                "refusals": ACCOUNTING["refusals"] + [2],
                "certificate": foreign + texts + floats(),
            },
        )
        for function, labels in ((tacit.theory.gate.gate_delta, True), (tacit.theory.gate.confirm_delta, False))
    ),
    (
        tacit.theory.gate.Certificate,
        {"nodes": [1.0, 2.0], "values": [[0.0, 0.3], [0.0, 0.1]], "corners": ((2**62, 2**61),)},
        {
            "nodes": [*not_finite_array, [1.0], [2.0, 3.0], [1.0, 1.0], [1.0, 2.0, 3.0]],
            "values": [*not_share, [[0.0], [0.0]], [[0.1, 0.2], [0.0, 0.1]], [[0.0, 0.3], [0.0, 0.0]]],
            "corners": foreign
            + floats()
            + [(), (1, 2), ((1, 2),), ((2, 1), (3, 1)), ((2**63, 1),), ((2, 0),), ((2, 1, 1),)],
        },
    ),
    *(
        (getattr(tacit.theory.learnability, name), good, {key: LEARNABILITY[key] for key in good})
        for name, good in {
            "log_growth": {"points": 10, "vc_dimension": 2},
            "realizable_error": {"records": 1000, "vc_dimension": 2, "failure_probability": 0.1},
            "agnostic_excess": {"records": 1000, "vc_dimension": 2, "failure_probability": 0.1},
            "sufficient_records": {
                "excess": 0.1,
                "vc_dimension": 2,
                "failure_probability": 0.1,
                "best_error": 0.1,
            },
            "hard_share": {"error": 0.1, "teachers": 3, "outvoted": 1},
            "hard_queries": {
                "error": 0.1,
                "teachers": 3,
                "outvoted": 1,
                "queries": 4,
                "failure_probability": 0.1,
            },
            "tolerated_votes": {"teachers": 9, "distance": 2},
            "stable_release_distance": {"scale": 2.0, "threshold": 3, "queries": 4, "failure_probability": 0.1},
            "gnmax_distance": {"sigma": 5.0, "classes": 3, "queries": 4, "failure_probability": 0.1},
            "gnmax_test_margin": {"test_sigma": 5.0, "queries": 4, "failure_probability": 0.1},
            "printed_refusals": {"error": 0.1, "queries": 4, "failure_probability": 0.1},
            "printed_answer_error": {"excess": 0.1, "best_error": 0.1},
            "printed_student_error": {"excess": 0.1, "best_error": 0.1},
            "printed_records": {
                "excess": 0.1,
                "vc_dimension": 2,
                "epsilon": 1.0,
                "delta": 1e-5,
                "failure_probability": 0.1,
                "best_error": 0.1,
            },
            "student_error": {
                "queries": 4,
                "wrong_labels": 1,
                "vc_dimension": 2,
                "failure_probability": 0.1,
                "best_error": 0.1,
            },
        }.items()
    ),
    (
        tacit.learning.plan,
        {
            "records": 1000,
            "queries": 10,
            "epsilon": 1.0,
            "delta": 1e-5,
            "failure_probability": 0.1,
            "error": 0.1,
            "vc_dimension": None,
            "best_error": 0.0,
            "classes": 3,
            "teachers": 10,
        },
        {
            "records": LEARNABILITY["records"],
            "queries": LEARNABILITY["queries"],
            "epsilon": ACCOUNTING["epsilon"] + [0.0],
            "delta": not_probability,
            "failure_probability": not_probability,
            "error": [*without_none(not_error), {}, {0: 0.1}, {9: 2.0}],
            "vc_dimension": [*without_none(LEARNABILITY["vc_dimension"]), 3],
            "best_error": LEARNABILITY["best_error"] + [0.1],
            "classes": LEARNABILITY["classes"] + [1001],
            "teachers": [*without_none(LEARNABILITY["teachers"]), 1001],
        },
    ),
    (
        Table,
        {"title": "t", "columns": ("a", "b"), "rows": (("1", "2"),), "note": "n"},
        {
            "title": not_text,
            "columns": foreign + floats() + lists_of_floats + [("a",), (), "ab"],
            "rows": [*not_a_list_of_records, (), (("1",),), ((1, 2),)],
            "note": not_text,
        },
    ),
    (tacit.learning.vote_counts, {"votes": [[0, 1]], "classes": 2}, {"votes": not_counts, "classes": not_count}),
    *(
        (function, {"counts": [[2, 1]]}, {"counts": [*not_counts, [[-1, 2]], [[2**41, 2]]]})
        for function in (tacit.learning.winners, tacit.learning.votes_to_flip)
    ),
    (
        tacit.learning.data_dependent_epsilon,
        {"counts": [[2, 1]], "sigma": 4.0, "delta": 1e-5},
        {"counts": not_counts, "sigma": not_positive, "delta": not_probability},
    ),
    (
        tacit.learning.Game,
        {"name": "n", "left": [[2, 1]], "right": [[1, 2]]},
        {"name": not_text, "left": [*not_counts, [[4, 1]]], "right": [*not_counts, [[2, 1, 0]]]},
    ),
    (
        tacit.learning.games,
        {"mechanism": tacit.learning.GNMax(epsilon=1.0, delta=1e-2, queries=2), "length": 2, "seed": 0},
        {"length": [*not_count, 1], "seed": not_count},
    ),
    (
        tacit.learning.distinguishing_attack,
        {
            "mechanism": tacit.learning.StableRelease(epsilon=1.0, delta=1e-2),
            "runs": 100,
            "length": 2,
            "failure_probability": 0.1,
            "seed": 0,
        },
        {
            "runs": [*not_count, 99],
            "length": [*not_count, 1],
            "failure_probability": not_probability,
            "seed": not_count,
        },
    ),
]

CASES = [
    pytest.param(door, good, name, bad, id=f"{door.__qualname__}-{name}")
    for door, good, fields in DOORS
    for name, bad in fields.items()
]


@pytest.mark.parametrize(("door", "good"), [pytest.param(*row[:2], id=row[0].__qualname__) for row in DOORS])
def test_the_good_values_of_this_table_are_good(door, good):
    if door is not demo.demo:  # which test_demo.py runs
        door(**good)


@pytest.mark.parametrize(("door", "good", "name", "bad"), CASES)
def test_unusable_values_get_one_clear_line(door, good, name, bad):
    for value in bad:
        with pytest.raises(TacitError) as refusal:
            door(**{**good, name: value})
        message = str(refusal.value)
        assert "\n" not in message
        assert "must" in message  # the requirement
        assert "got" in message  # the value
        assert ";" in message  # the remedy follows
        assert len(message) < 500


def test_every_public_door_is_in_the_table():
    doors = {door for door, _, _ in DOORS}
    modules = (
        tacit.theory.accounting,
        tacit.theory.learnability,
        tacit.theory.divergences,
        tacit.theory.quantized,
        tacit.theory.densities,
        tacit.theory.certificates,
        tacit.theory.confidence,
        tacit.theory.estimation,
        tacit.theory.gate,
        tacit.theory.adaptive_threshold,
        tacit.theory.label_moments,
        tacit.theory.leakage,
        tacit.theory.open_threshold,
        entropy,
    )
    public = {
        function
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }
    classes = {Assumption, Adversary, Guarantee, Attack, Comparison, Figure, Report, Table}
    assert public | classes <= doors


def test_errors_that_travel_between_processes_stay_whole():
    import pickle

    with pytest.raises(TacitError) as refusal:
        Assumption(text="", checked_by="code")
    again = pickle.loads(pickle.dumps(refusal.value))  # noqa: S301 — our own bytes, as worker processes send them
    assert str(again) == str(refusal.value)


def test_a_signalling_nan_is_refused_without_a_warning():
    """Of a damaged file: NumPy would warn before the number is looked at."""
    signalling = np.array([0x7FA00000], dtype=np.uint32).view(np.float32)
    with pytest.raises(InputError, match="x must be a non-empty array of finite real numbers"):
        validate.array("x", signalling, remedy="pass numbers")
