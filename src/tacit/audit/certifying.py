"""Make certificates: a table, or its counts, in; a Certificate out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.deprecation import renamed
from ..core.errors import InputError, NoTheoremError
from ..core.guarantee import Assumption
from ..core.rounding import up
from ..theory import certificates
from . import limits, plug_in
from .cells import STEPS
from .certificate import Certificate
from .columns import column, multiplicities
from .tally import Tally

LOSSES = ("auto", "squared", "log", "zero-one", "joint")
METHODS = ("auto", "discrete", "noisy", "noise added", "monotone", "lipschitz", "continuous")
FORMS = ("sharp", "closed", "pairwise", "printed")
SAMPLINGS = ("by class", "pairs")
_REMEDY = (
    "release it with Gaussian noise and pass noise, round it before release, or state method='monotone' or "
    "assume_max_slope"
)
_ORDERED = ("boolean", "whole", "float")  # columns for which "monotone" has a meaning


class ContinuousOutputError(NoTheoremError):
    """Nothing can be certified of a continuous output without noise and without a stated structure."""


@renamed(delta="failure_probability", lipschitz="assume_max_slope")
def certify(
    secret: object,
    output: object,
    *,
    failure_probability: float = 0.05,
    loss: str = "auto",
    noise: float | None = None,
    noise_added: float | None = None,
    method: str = "auto",
    form: str = "sharp",
    sampling: str = "by class",
    assume_max_slope: float | None = None,
    width: float | None = None,
    alphabet: int | None = None,
    weights: object = None,
    positive: object = None,
    name: str = "the output",
    seed: int = 0,
) -> Certificate:
    """Certify what nobody who sees an output can learn about a secret.

    Parameters
    ----------
    secret
        A column with two values.
    output
        What the adversary sees: a column, or several (a mapping, a data frame or a two-dimensional array) that are
        seen together.
    failure_probability
        The chance that the rows were so unusual that the certificate is false.
    loss
        What is certified: "squared" (v = 1 − least squared error), "log" (mutual information), "zero-one" (total
        variation), or "joint" (v and total variation, which share the failure probability; v of a discrete output by
        pairs of rows with the same output as well, so that outputs of many values are no disadvantage). All readings
        follow from each. "auto" is "joint", and "squared" where no other theorem exists: for a Lipschitz posterior, and
        in printed form.
    noise
        Standard deviation of Gaussian noise that is added to every number of the output when it is released. The
        column holds the numbers before the noise.
    noise_added
        Standard deviation of Gaussian noise that the column holds already: its numbers are those released. The
        certificate is weaker, as the numbers before the noise are not known.
    method
        "auto" chooses by the output and the noise: "discrete", "noisy" or "noise added". Two more are assumptions of
        yours that no table can confirm. "monotone": the probability of the secret only grows, or only falls, with the
        output. "lipschitz", which `assume_max_slope` states: the secret's mean given the output, coded ±1 and with both
        values equally likely, changes by at most so much per unit of the output. "continuous" certifies nothing:
        `audit` uses it to attack an output that no method fits.
    form
        "sharp", "closed" (a formula), "pairwise" (v from pairs of rows with the same output alone: where it is known
        beforehand that outputs have many values), or "printed" (Theorems 2 and 3 of the paper).
    sampling
        "by class": given their secrets, outputs are independent draws of their class; the classes may have any sizes.
        "pairs": rows are independent pairs, and every secret was a fair coin.
    assume_max_slope
        The constant of method "lipschitz", which it implies; a Barron constant is one.
    width
        Diameter of the bins of "lipschitz", fixed before the data was seen. For one column whose range is known, about
        (2·range/(assume_max_slope²·rows))^(1/3) is best.
    alphabet
        How many values the output can take at all, for the printed log-loss.
    weights
        Multiplicities of rows, whole numbers.
    positive
        The secret that is called positive, for rates; by default the one that sorts last: True, 1, "yes".
    name
        The output in words, for reports.
    seed
        Of the Monte Carlo that more than 3 columns with noise need, which a tenth of the failure probability pays for.
        Fix it beforehand. (Rows whose pairs are counted are drawn from the classes by a digest of the counts, and
        those whose products are by a digest of the outputs: nobody chooses these.)

    Raises
    ------
    NoTheoremError
        Where the output is continuous, comes without noise, and no assumption is stated: every valid limit is 1 then.
    InputError
        Where a column or an option cannot be used.

    References
    ----------
    Diaz, Kairouz, Liao and Sankar 2019, *Theoretical guarantees for model auditing with finite adversaries*.
    """
    chosen = _choices(failure_probability, loss, method, form, sampling, assume_max_slope)
    if assume_max_slope is not None and width is None:
        width = bin_width(assume_max_slope, rows=len(column("secret", secret)))
    rows = None if noise_added is None else max(1, int(multiplicities(weights, len(column("secret", secret))).sum()))
    tally = Tally(noise=noise, width=width, noise_added=noise_added, rows=rows).add(secret, output, weights=weights)
    return certify_tally(tally, alphabet=alphabet, positive=positive, name=name, seed=seed, **chosen)


def bin_width(lipschitz: float, *, rows: int) -> float:
    """The default width of bins for "lipschitz": it balances what bins hide against what chance adds.

    It depends on the number of rows alone, not on any output.
    """
    return max(1e-300, math.cbrt(4 / max(rows, 1)) / max(lipschitz, 1e-300))


@renamed(delta="failure_probability", lipschitz="assume_max_slope")
def certify_tally(
    tally: Tally,
    *,
    failure_probability: float = 0.05,
    loss: str = "auto",
    method: str = "auto",
    form: str = "sharp",
    sampling: str = "by class",
    assume_max_slope: float | None = None,
    alphabet: int | None = None,
    positive: object = None,
    name: str = "the output",
    seed: int = 0,
) -> Certificate:
    """Certify counts that were gathered batch by batch.

    Parameters
    ----------
    tally
        The counts; its own settings say how the output is released.
    failure_probability, loss, method, form, sampling, assume_max_slope, alphabet, positive, name, seed
        As in `certify`.

    Raises
    ------
    NoTheoremError, InputError
        As in `certify`.
    """
    chosen = _choices(failure_probability, loss, method, form, sampling, assume_max_slope)
    failure_probability, lipschitz = chosen["failure_probability"], chosen["assume_max_slope"]
    loss, method = str(chosen["loss"]), str(chosen["method"])
    if not isinstance(tally, Tally):
        raise InputError("tally", tally, requirement="must be a Tally", remedy="use certify for columns")
    output = validate.text("name", name, remedy="name what the adversary sees")
    validate.whole("seed", seed, at_least=0, remedy="use 0")
    if alphabet is not None:
        alphabet = validate.whole("alphabet", alphabet, at_least=1, remedy="count the values that are possible")
    paired = sampling == "pairs"
    if paired and not fair(tally.positives, tally.negatives):
        raise InputError(
            "sampling",
            f"'pairs' with {tally.positives} against {tally.negatives} rows",
            requirement="must be 'by class' where the secrets were no fair coin",
            remedy="use sampling='by class', which needs no shares of the classes",
        )
    method = _method(tally, method)
    names = ordered([tally.negative, tally.positive], positive)
    if method == "continuous":
        return uncertified(
            tally,
            names,
            failure_probability=0.0,
            output=output,
            method=method,
            reason="every valid limit on a continuous output without noise is 1",
            caution=f"Nothing can be certified of a continuous output, such as this one with {tally.symbols} different "
            f"values in {sum(tally.rows)} rows; {_REMEDY}.",
        )
    if form == "pairwise" and (method not in ("discrete", "lipschitz") or loss == "log"):
        raise NoTheoremError(
            "form='pairwise' must have a discrete or Lipschitz output and another loss than 'log', got "
            f"{method!r} and {loss!r}; use form='sharp'"
        )
    left = failure_probability
    smooth = method in ("noisy", "noise added")
    if smooth and tally.columns not in STEPS:
        left = 0.9 * failure_probability
        plug_ins = plug_in.sampled(tally, paired=paired, failure_probability=0.1 * failure_probability, seed=seed)
    else:
        plug_ins = {"monotone": plug_in.monotone}.get(method, plug_in.smoothed if smooth else plug_in.discrete)(
            tally, paired=paired
        )
    if form == "printed":
        found = limits.Limits(
            limits.printed_limits(tally, plug_ins, failure_probability, loss, method, paired, alphabet)
        )
    else:
        found = limits.confidence_limits(tally, plug_ins, left, loss=loss, form=form, method=method, paired=paired)
    bounds = found.bounds
    if method == "noise added":
        bounds = limits.unsmoothed(bounds, tally)
    if method == "lipschitz":
        if loss != "squared":
            raise NoTheoremError(
                f"a Lipschitz posterior must be certified with loss='squared', got {loss!r}; mutual information and "
                "total variation follow from it"
            )
        hidden = certificates.lipschitz_excess(float(lipschitz or 0.0), width=float(tally.width or 1.0))
        bounds = limits.from_squared(min(1.0, up(bounds.squared + hidden)))
    rows = dict(zip(tally.labels, tally.rows, strict=True))
    certified = {"log": plug_ins.information, "zero-one": plug_ins.variation}.get(loss, plug_ins.squared)
    return Certificate(
        **bounds._asdict(),
        plug_in=certified,
        failure_probability=failure_probability,
        loss=loss,
        method=method,
        form=form,
        sampling=sampling,
        output=released(tally, method, output),
        positive=names[1],
        negative=names[0],
        positives=rows[names[1]],
        negatives=rows[names[0]],
        theorem=_theorem(tally, method, loss, form, found, limits.countable(tally, plug_ins, form, paired), bounds),
        caution=_caution(tally, method),
        assumptions=assumptions_of(tally, method, sampling, lipschitz, alphabet if form == "printed" else None),
        cells=_cells(tally) if method == "discrete" and form in ("sharp", "closed") and loss != "log" else None,
        by_pairs=found.by_pairs,
        sticks=_sticks(tally, positive_first=names[1] == tally.positive)
        if limits.shares(loss, form, method, columns=tally.columns).sticks
        else (),
    )


def _sticks(tally: Tally, *, positive_first: bool) -> tuple[tuple[float, float, float], ...]:
    """ε, and the largest P₁(A) − e^ε P₀(A) on the table in both orders of the classes, that of the names first."""
    found = []
    measured = plug_in.hockey_sticks(tally, map(math.exp, limits.EPSILONS))
    for epsilon, sides in zip(limits.EPSILONS, measured, strict=True):
        found.append((epsilon, *(sides if positive_first else sides[::-1])))
    return tuple(found)


def _cells(tally: Tally) -> NDArray[np.int64]:
    """The counts of every output, sorted, so that their order does not tell which output is which."""
    counts = np.stack(tally.counts(), axis=1).astype(np.int64)
    return counts[np.lexsort(counts.T)]


_ROWS_OF_ATTACKS = (
    Assumption(
        text="rows are independent, and given the secret the output is drawn from one law for its class: attacks are "
        "measured on rows",
        checked_by="caller",
    ),
    Assumption(text="columns and seed were chosen before this table was seen", checked_by="caller"),
)


def uncertified(
    tally: Tally,
    names: list[Any],
    *,
    failure_probability: float,
    output: str,
    method: str,
    reason: str,
    caution: str = "",
) -> Certificate:
    """A certificate that bounds nothing, for a table that nothing can be certified of.

    `names` are the negative and the positive secret; `reason` stands in the place of the theorem.
    """
    rows = dict(zip(tally.labels, tally.rows, strict=False))
    return Certificate(
        **limits.TRIVIAL._asdict(),
        plug_in=1.0,
        failure_probability=failure_probability,
        loss="none",
        method=method,
        form="none",
        sampling="none",
        output=output,
        positive=names[1],
        negative=names[0],
        positives=rows.get(names[1], 0),
        negatives=rows.get(names[0], 0),
        theorem=(f"none: {reason}",),
        assumptions=_ROWS_OF_ATTACKS,
        caution=caution,
    )


def ordered(labels: list[Any], positive: object) -> list[Any]:
    """The negative and the positive secret, in this order."""
    if positive is None:
        return labels
    if positive not in labels:
        raise InputError(
            "positive", positive, requirement=f"must be one of the secrets, {labels}", remedy="spell it as in the table"
        )
    return [label for label in labels if label != positive] + [label for label in labels if label == positive]


def fair(positives: int, negatives: int) -> bool:
    """Whether fair coins may have given these counts, within eight standard deviations."""
    return abs(positives - negatives) <= 8 * math.sqrt(positives + negatives)


def _choices(
    failure_probability: object, loss: object, method: object, form: object, sampling: object, slope: object
) -> dict[str, Any]:
    chosen = {
        "failure_probability": validate.probability(
            "failure_probability", failure_probability, remedy="use a small probability such as 0.05"
        ),
        "loss": validate.choice("loss", loss, LOSSES, remedy="use 'auto'"),
        "method": validate.choice("method", method, METHODS, remedy="use 'auto'"),
        "form": validate.choice("form", form, FORMS, remedy="use 'sharp'"),
        "sampling": validate.choice("sampling", sampling, SAMPLINGS, remedy="use 'by class'"),
        "assume_max_slope": slope,
    }
    if slope is not None:
        chosen["assume_max_slope"] = validate.number(
            "assume_max_slope", slope, at_least=0, remedy="give the Lipschitz constant of E[S|T]"
        )
        if method == "auto":
            chosen["method"] = method = "lipschitz"
    if loss == "auto":
        chosen["loss"] = "squared" if method == "lipschitz" or form == "printed" else "joint"
    if (slope is not None) != (method == "lipschitz"):
        raise InputError(
            "assume_max_slope",
            slope,
            requirement="must be given with method='lipschitz', and with no other",
            remedy="leave `method` out where you give it",
        )
    return chosen


def _method(tally: Tally, method: str) -> str:
    """The method to use; refuses one that does not fit what was counted."""
    tally.positive  # noqa: B018 — refuses an empty table and one of one class first
    natural = "noisy" if tally.noise is not None else "lipschitz" if tally.width is not None else "discrete"
    if tally.noise_added is not None:
        tally.check_noise()
        natural = "noise added"
    if method == "auto" and natural == "discrete":
        if tally.continuous:
            raise ContinuousOutputError(
                f"a continuous output must be released with noise or have a stated structure, got {tally.symbols} "
                f"different values in {sum(tally.rows)} rows, for which every valid limit is 1; {_REMEDY}"
            )
        return "discrete"
    fits = {natural} if natural != "discrete" else {"discrete", "continuous", *["monotone"] * (tally.kind in _ORDERED)}
    if method != "auto" and method not in fits:
        raise InputError(
            "method",
            method,
            requirement=f"must be one of {', '.join(sorted(fits - {'continuous'}))} for this output",
            remedy="pass noise for 'noisy', assume_max_slope for 'lipschitz', and one column of numbers for 'monotone'",
        )
    if method == "auto" and natural == "lipschitz":
        raise InputError(
            "method",
            method,
            requirement="must be 'lipschitz' where width is given",
            remedy="state the Lipschitz constant with it, or leave width out",
        )
    return natural if method == "auto" else method


def released(tally: Tally, method: str, output: str) -> str:
    """What the adversary sees, in words."""
    if method == "noisy":
        return f"{output} with Gaussian noise of standard deviation {tally.noise!r} on top of what the table holds"
    if method == "noise added":
        return f"{output}, which holds Gaussian noise of standard deviation {tally.noise_added!r}"
    return output


def _caution(tally: Tally, method: str) -> str:
    if method == "noisy" and tally.waves is not None and tally.waves.likely:
        return (
            f"The table must hold the output before noise is added. Its numbers look as if they held noise of "
            f"{tally.noise!r} already: if they do, the certificate is false; pass noise_added instead of noise."
        )
    return ""


def _theorem(
    tally: Tally,
    method: str,
    loss: str,
    form: str,
    found: limits.Limits,
    exact: bool,
    bounds: limits.Bounds,
) -> tuple[str, ...]:
    """The theorem in words, then every function between the table and the bounds, in the order of use."""
    if form == "printed":
        number, function = ("2", "printed_squared_loss") if loss == "squared" else ("3", "printed_log_loss")
        return (
            f"Theorem {number} of Diaz, Kairouz, Liao and Sankar 2019",
            f"theory.certificates.{function}",
        )
    of_squares = {"sharp": "squared_sharp", "closed": "squared_closed"}.get(form, "")
    squared = {f"Theorem B, {form} form": f"certificates.{of_squares}"} if of_squares else {}
    if found.by_pairs is not None:
        pairwise = {"pairs of rows": "pairs.squared_pairwise"}
        # The one that gives the number comes last.
        squared = squared | pairwise if found.by_pairs.squared == bounds.squared else pairwise | squared
    words = {
        "squared": tuple(squared),
        "log": (f"Theorem C, {form} form",),
        "zero-one": ("limits for total variation",),
        "joint": (*squared, "limits for total variation"),
    }
    theorem = [*words[loss]]
    if method in ("noisy", "noise added"):
        counted = tally.columns in STEPS
        theorem.append("theory.certificates.binning_root" if counted else "theory.confidence.bounded_mean_upper")
    if loss in ("squared", "joint"):
        theorem += [f"theory.{function}" for function in squared.values()]
    if loss == "log":
        theorem.append(f"theory.certificates.log_{form}")
    if loss in ("zero-one", "joint"):
        variation = [f"theory.certificates.variation_{'exact' if exact else 'upper'}"]
        if found.by_kernel is not None:
            variation.append("theory.kernels.variation_kernel")
        theorem += variation if found.by_kernel == bounds.variation else variation[::-1]
    if method == "noise added":
        theorem += ["theory.certificates.smoothing_root", "theory.certificates.smoothing_variation"]
    if method == "lipschitz":
        theorem.append("theory.certificates.lipschitz_excess")
    return tuple(theorem)


def assumptions_of(
    tally: Tally, method: str, sampling: str, lipschitz: float | None = None, alphabet: int | None = None
) -> tuple[Assumption, ...]:
    """What a certificate rests on; what no table can confirm comes first."""
    rows = {
        "by class": "rows are independent, and given the secret the output is drawn from one law for its class",
        "pairs": "rows are independent pairs from one law, and every secret was a fair coin",
    }[sampling]
    assumed = [
        _caller(rows),
        _caller("columns, method, form, noise, bins and seed were chosen before this table was seen"),
        Assumption(text="the secret takes two values, both in the table, and nothing is missing", checked_by="code"),
    ]
    if method == "noisy":
        assumed.insert(
            0,
            _caller(
                "each record's output is released once, with fresh Gaussian noise of standard deviation "
                f"{tally.noise!r} in each coordinate, rounded so that low bits tell nothing, and never without noise; "
                "the table holds it without noise"
            ),
        )
    if method == "noise added":
        assumed.insert(
            0,
            _caller(
                "the table holds the output as it is released, once for each record, with fresh Gaussian noise of "
                f"standard deviation {tally.noise_added!r} in each coordinate; it is rounded by at most "
                f"{plug_in.ROUNDING * float(tally.noise or 0):.2g}, by one rule for all records that looks at the "
                "noisy number alone, so that neither low bits nor spelling tell more"
            ),
        )
    if method == "monotone":
        assumed.insert(0, _caller("the probability of the secret only grows, or only falls, with the output"))
    if method == "lipschitz":
        assumed.insert(
            0,
            _caller(
                "the secret's mean given the output, coded ±1 and with both values equally likely, changes by at most "
                f"{lipschitz!r} per unit of the output (counted in bins of {tally.width:.6g})"
            ),
        )
    if alphabet is not None:
        assumed.append(_caller(f"the output can take no more than {alphabet} values"))
    return tuple(assumed)


def _caller(text: str) -> Assumption:
    return Assumption(text=text, checked_by="caller")
