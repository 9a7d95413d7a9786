"""Certificates: what nobody who sees an output can learn about a secret, from a table of both.

certify            a table in, a Certificate out
certify_tally      the same from a Tally, for tables that are read in batches
certify_slices     one certificate for each part of a table, all valid together (certify_tallies: in batches)
certify_network    Theorem 1 of the paper, from the loss of a two-layer network
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import checked
from ..cards import card
from ..errors import InputError, NoTheoremError
from ..guarantee import Adversary, Assumption, Guarantee, safe_text
from ..numerics import down, up
from ..theory import certificates, leakage
from . import plug_in
from .tally import STEPS, Tally, column, multiplicities, output_columns, two_labels

if TYPE_CHECKING:
    from ..report import Figure
    from .attacks import Attempt

LOSSES = ("squared", "log", "zero-one", "joint")
METHODS = ("auto", "discrete", "noisy", "monotone", "lipschitz")
FORMS = ("sharp", "closed", "printed")
SAMPLINGS = ("by class", "pairs")

SCOPE = (
    "It covers exactly this output: who also sees the input, the label, other queries or other models is not covered.",
    "It speaks of the average record, not of the worst: v = 0.01 allows 1 % of the records to be fully exposed.",
    "It is not differential privacy.",
    "Rates and bits are for a secret that is a fair coin, whatever the shares of the classes in the table.",
)
"""What every reader has to be told."""

_LN2 = math.log(2)
_ORDERED = ("boolean", "whole", "float")  # columns for which "monotone" has a meaning

READINGS = {
    "advantage": "advantage (TPR − FPR)",
    "balanced accuracy": "balanced accuracy",
    "auc": "area under the ROC curve",
    "bits": "information in bits",
    "squared loss": "least mean squared error of a guess of the secret, ±1",
    "log loss": "least log-loss in nats",
    "error": "least error rate",
}
"""What `Certificate.guarantee_of` takes, and how its quantity begins."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Upper bounds on what an output tells about a secret, valid together except with probability `delta`.

    squared        v = 1 − least mean squared error of a guess of the secret, coded ±1
    information    mutual information in nats
    variation      total variation: the largest advantage TPR − FPR

    All hold for everyone who sees the output and nothing else, whatever their method, and all readings follow.
    `plug_in` is the certified quantity on the table itself.
    """

    squared: float
    information: float
    variation: float
    plug_in: float
    delta: float
    loss: str
    method: str
    form: str
    sampling: str
    output: str
    positive: Any
    negative: Any
    positives: int
    negatives: int
    theorem: str
    assumptions: tuple[Assumption, ...]

    @property
    def condition(self) -> str:
        """What the claim rests on beside the way rows were drawn, and no table can show; empty if nothing."""
        stated = {"monotone": 1, "lipschitz": 1, "network": 3}.get(self.method, 0)
        return " and ".join(assumption.text for assumption in self.assumptions[:stated])

    @property
    def advantage(self) -> float:
        """At most this is TPR − FPR of any guess."""
        return self.variation

    @property
    def balanced_accuracy(self) -> float:
        """At most this share of guesses is right where both secrets are equally likely."""
        return min(1.0, up((1 + self.variation) / 2))

    @property
    def auc(self) -> float:
        """At most this is the area under the ROC curve of any score."""
        return leakage.auc_upper(squared=self.squared, advantage=self.variation)

    @property
    def bits(self) -> float:
        """At most so many bits does the output tell about the secret."""
        return min(1.0, up(self.information / _LN2, relative=1e-14))

    @property
    def squared_loss(self) -> float:
        """At least this is the mean squared error of any guess of the secret, coded ±1; 1 is no knowledge."""
        return max(0.0, down(1 - self.squared))

    @property
    def log_loss(self) -> float:
        """At least this is the log-loss of any guess, in nats; ln 2 is no knowledge."""
        return max(0.0, down(_LN2 - self.information))

    @property
    def error(self) -> float:
        """At least this share of guesses is wrong where both secrets are equally likely; ½ is no knowledge."""
        return max(0.0, down((1 - self.variation) / 2))

    @overload
    def tpr_at(self, false_positive_rate: float) -> float: ...

    @overload
    def tpr_at(self, false_positive_rate: ArrayLike) -> NDArray[np.float64]: ...

    def tpr_at(self, false_positive_rate: ArrayLike) -> float | NDArray[np.float64]:
        """At most these are the true positive rates of any test, or family of tests, with the rates given."""
        return leakage.roc_upper(false_positive_rate, squared=self.squared, advantage=self.variation)

    @overload
    def hockey_stick(self, epsilon: float) -> float: ...

    @overload
    def hockey_stick(self, epsilon: ArrayLike) -> NDArray[np.float64]: ...

    def hockey_stick(self, epsilon: ArrayLike) -> float | NDArray[np.float64]:
        """δ(ε): with it the two classes' outputs are (ε, δ)-indistinguishable, both ways, on average over records."""
        epsilons = checked.array("epsilon", epsilon, at_least=0, at_most=700, remedy="give the privacy loss, e.g. 1.0")
        found = [
            leakage.hockey_stick_upper(float(one), squared=self.squared, advantage=self.variation)
            for one in epsilons.ravel()
        ]
        return np.array(found).reshape(epsilons.shape)[()]

    def accuracy(self, prior: float) -> float:
        """At most this share of guesses is right where the positive secret has the prior probability given."""
        p = checked.probability("prior", prior, remedy="give the share of the positive class")
        rare = min(p, 1 - p)
        # δ(ε) falls: at 700, the largest ε that it is computed for, it is no smaller than beyond.
        epsilon = min(700.0, max(0.0, down(math.log((1 - rare) / rare), relative=1e-14)))
        return min(1.0, up(1 - rare + rare * float(self.hockey_stick(epsilon)), relative=1e-14))

    @property
    def guarantee(self) -> Guarantee:
        """The headline: the largest advantage of anyone."""
        return self.guarantee_of("advantage")

    def guarantee_of(self, reading: str) -> Guarantee:
        """One of `READINGS` as a guarantee, with all assumptions and the scope."""
        checked.choice("reading", reading, tuple(READINGS), remedy="use 'advantage' for the headline")
        value = float(getattr(self, reading.replace(" ", "_")))
        return Guarantee(
            quantity=self.quantity(reading),
            side="at_least" if reading in ("squared loss", "log loss", "error") else "at_most",
            value=value,
            adversary=Adversary.OUTPUT.scoped(self.output),
            theorem=self.theorem,
            assumptions=self.assumptions,
            failure_probability=self.delta,
            detail={
                "squared": self.squared,
                "information": self.information,
                "variation": self.variation,
                "plug_in": self.plug_in,
                "loss": self.loss,
                "method": self.method,
                "form": self.form,
                "sampling": self.sampling,
                "positives": self.positives,
                "negatives": self.negatives,
                "scope": SCOPE,
            },
        )

    def quantity(self, reading: str) -> str:
        """The quantity of that guarantee; attacks that are compared with it have to name the same."""
        return f"{READINGS[reading]} in telling {self.positive!r} from {self.negative!r} by {self.output}"

    def plot(self, attempts: Sequence[Attempt] = ()) -> Figure:
        """The region that no ROC curve leaves, and those of `attempts` inside it; a notebook shows it."""
        from ..report import Figure, figures

        rates = (np.linspace(0, 1, 201) ** 2).tolist()
        return Figure(
            title=f"{self.positive!r} told from {self.negative!r} by {self.output}",
            caption=f"Nobody who sees only {self.output} leaves the shaded region, whatever the method"
            + (f", if {self.condition}" if self.condition else "")
            + ". The diagonal is guessing."
            + " Lines: attacks, on rows of their own, which may stray by chance." * bool(attempts),
            alternative="True against false positive rate: the region reaches "
            f"{safe_text(self.advantage, toward='up')} above the diagonal.",
            svg=figures.roc(
                rates, np.asarray(self.tpr_at(rates)).tolist(), {attempt.method: attempt.roc for attempt in attempts}
            ),
        )

    def _repr_html_(self) -> str:
        guarantees = (self.guarantee_of(reading) for reading in READINGS)
        readings = tuple(f"{READINGS[name]}: {one.bound_text}" for name, one in zip(READINGS, guarantees, strict=True))
        headline = f"What {self.output} tells about {self.positive!r} or {self.negative!r}"
        chance, scope = self.guarantee.chance_text, SCOPE
        return card(headline, [(f"proven, {chance}", readings), *self.guarantee.facts[1:], ("mind", scope)])

    def meets(self, *, advantage: float) -> bool:
        """Whether the certificate keeps every adversary's advantage at or below a ceiling."""
        ceiling = checked.number("advantage", advantage, at_least=0, at_most=1, remedy="give a ceiling, e.g. 0.1")
        return self.advantage <= ceiling


def certify(
    secret: object,
    output: object,
    *,
    delta: float,
    loss: str = "squared",
    noise: float | None = None,
    method: str = "auto",
    form: str = "sharp",
    sampling: str = "by class",
    lipschitz: float | None = None,
    width: float | None = None,
    alphabet: int | None = None,
    weights: object = None,
    positive: object = None,
    name: str = "the output",
    seed: int = 0,
) -> Certificate:
    """What nobody who sees `output` can learn about `secret`, except with probability `delta` over the table.

    secret      a column with two values
    output      a column, or several (a mapping or a two-dimensional array), seen together
    loss        what is certified: "squared" (v), "log" (mutual information), "zero-one" (total variation), or "joint"
                (v and total variation, half of delta each); all readings follow from each
    noise       standard deviation of the Gaussian noise with which every number is released
    method      "auto", "discrete", "noisy"; "monotone": the probability of the secret only grows, or only falls, with
                the output; "lipschitz": E[S|T], of S a fair coin whatever the table's shares, is Lipschitz with the
                constant `lipschitz` (a Barron constant is one). The last two are assumptions of yours that no table
                can show
    form        "sharp", "closed" (a formula), or "printed" (Theorems 2 and 3 of the paper)
    sampling    "by class": given their secrets, outputs are independent draws of their class; any class sizes.
                "pairs": rows are independent pairs, and every secret was a fair coin
    width       diameter of the bins of "lipschitz", fixed before the data was seen; for one column whose range is
                known, about (2·range/(lipschitz²·rows))^(1/3) is best
    alphabet    number of values that the output can take at all, for the printed log-loss
    weights     multiplicities of rows, whole numbers
    positive    the secret that is called positive, for rates; unless given, the one that sorts last: True, 1, "yes"
    name        the output in words, for reports
    seed        of the Monte Carlo that more than 3 columns with noise take; a tenth of delta pays for it

    A continuous output without noise and without an assumption cannot be certified by anyone, and is refused.
    """
    chosen = _choices(delta, loss, method, form, sampling, lipschitz)
    if method == "lipschitz" and width is None and lipschitz is not None:
        width = bin_width(lipschitz, rows=len(column("secret", secret)))
    tally = Tally(noise=noise, width=width).add(secret, output, weights=weights)
    return certify_tally(tally, alphabet=alphabet, positive=positive, name=name, seed=seed, **chosen)


def bin_width(lipschitz: float, *, rows: int) -> float:
    """The width of bins for "lipschitz" where none is given: what they hide and what chance adds are of one size.

    As if the posterior might run once through its whole range. It depends on no outcome.
    """
    return max(1e-300, math.cbrt(4 / max(rows, 1)) / max(lipschitz, 1e-300))


def certify_tally(
    tally: Tally,
    *,
    delta: float,
    loss: str = "squared",
    method: str = "auto",
    form: str = "sharp",
    sampling: str = "by class",
    lipschitz: float | None = None,
    alphabet: int | None = None,
    positive: object = None,
    name: str = "the output",
    seed: int = 0,
) -> Certificate:
    """`certify` from counts that were gathered batch by batch."""
    chosen = _choices(delta, loss, method, form, sampling, lipschitz)
    delta, lipschitz = chosen["delta"], chosen["lipschitz"]
    if not isinstance(tally, Tally):
        raise InputError("tally", tally, requirement="must be a Tally", remedy="use certify for columns")
    output = checked.text("name", name, remedy="name what the adversary sees")
    checked.whole("seed", seed, at_least=0, remedy="use 0")
    if alphabet is not None:
        alphabet = checked.whole("alphabet", alphabet, at_least=1, remedy="count the values that are possible")
    paired = sampling == "pairs"
    if paired and not _fair(tally.positives, tally.negatives):
        raise InputError(
            "sampling",
            f"'pairs' with {tally.positives} against {tally.negatives} rows",
            requirement="must be 'by class' where the secrets were no fair coin",
            remedy="use sampling='by class', which needs no shares of the classes",
        )
    method = _method(tally, method)
    left = delta
    if method == "noisy" and tally.columns not in STEPS:
        left = 0.9 * delta
        plug_ins = plug_in.sampled(tally, paired=paired, failure_probability=0.1 * delta, seed=seed)
    else:
        plug_ins = {"monotone": plug_in.monotone, "noisy": plug_in.smoothed}.get(method, plug_in.discrete)(
            tally, paired=paired
        )
    if form == "printed":
        bounds = _printed(tally, plug_ins, delta, loss, method, paired, alphabet)
    else:
        bounds = _limits(tally, plug_ins, left, loss, form, paired)
    if method == "lipschitz":
        if loss != "squared":
            raise NoTheoremError(
                f"a Lipschitz posterior must be certified with loss='squared', got {loss!r}; mutual information and "
                "total variation follow from it"
            )
        hidden = certificates.lipschitz_excess(float(lipschitz or 0.0), width=float(tally.width or 1.0))
        bounds = _from_squared(min(1.0, up(bounds[0] + hidden)))
    names = _ordered([tally.negative, tally.positive], positive)
    rows = dict(zip(tally.labels, tally.rows, strict=True))
    certified = {"log": plug_ins.information, "zero-one": plug_ins.variation}.get(loss, plug_ins.squared)
    return Certificate(
        squared=bounds[0],
        information=bounds[1],
        variation=bounds[2],
        plug_in=certified,
        delta=delta,
        loss=loss,
        method=method,
        form=form,
        sampling=sampling,
        output=output if method != "noisy" else f"{output} with Gaussian noise of standard deviation {tally.noise!r}",
        positive=names[1],
        negative=names[0],
        positives=rows[names[1]],
        negatives=rows[names[0]],
        theorem=_theorem(loss, form),
        assumptions=_assumptions(tally, method, sampling, lipschitz, alphabet if form == "printed" else None),
    )


def certify_slices(
    secret: object, output: object, slices: object, *, delta: float, **options: Any
) -> dict[Any, Certificate]:
    """A certificate for every value of the column `slices`, all valid together except with probability `delta`.

    Options are those of `certify`. Each slice gets an equal share of delta. A slice with one class alone has a
    certificate that bounds nothing, and says so.
    """
    parts, secrets = column("slices", slices), column("secret", secret)
    if len(parts) != len(secrets) or not len(parts):
        raise InputError(
            "slices",
            f"{len(parts)} rows",
            requirement=f"must be a column with as many rows as secret, {len(secrets)}",
            remedy="pass columns of one table",
        )
    kind = {name: options.pop(name, None) for name in ("noise", "width")}
    weights = options.pop("weights", None)
    counts = None if weights is None else multiplicities(weights, len(secrets))
    columns = output_columns(output, rows=len(secrets))
    tallies = {}
    values, places = np.unique(parts, return_inverse=True)
    for place, value in enumerate(values.tolist()):
        rows = places == place
        kept = None if counts is None else counts[rows]
        seen = dict(enumerate(one[rows] for one in columns))
        tallies[value] = Tally(**kind).add(secrets[rows], seen, weights=kept)
    return certify_tallies(tallies, delta=delta, **options)


def certify_tallies(tallies: Mapping[Any, Tally], *, delta: float, **options: Any) -> dict[Any, Certificate]:
    """`certify_slices` from one tally for each slice; options are those of `certify_tally`."""
    delta = checked.probability("delta", delta, remedy="use a small probability such as 0.05")
    if not isinstance(tallies, Mapping) or not tallies:
        raise InputError(
            "tallies", tallies, requirement="must be a mapping of slices to tallies", remedy="make one for each slice"
        )
    name = options.pop("name", "the output")
    labels: list[Any] = []
    for tally in tallies.values():
        labels = two_labels(labels, tally.labels)
    labels = _ordered(sorted(labels), options.get("positive"))
    found = {}
    for value, tally in tallies.items():
        part = f"{name} in slice {value!r}"
        if len(labels) == 2 and not all(tally.rows):
            found[value] = _nothing(tally, labels, delta / len(tallies), part)
        else:
            found[value] = certify_tally(tally, delta=delta / len(tallies), name=part, **options)
    return found


def certify_network(
    empirical_loss: float,
    *,
    positives: int,
    negatives: int,
    neurons: int,
    barron: float,
    diameter: float,
    delta: float,
    name: str = "the output",
) -> Certificate:
    """Theorem 1 of the paper as printed: from the squared loss of a two-layer network on the table.

    Only as good as its assumption that training reached the global minimum; `certify` needs no such thing.
    """
    for label, rows in (("positives", positives), ("negatives", negatives)):
        checked.whole(label, rows, at_least=1, remedy="count the rows of the class")
    if not _fair(positives, negatives):
        raise InputError(
            "negatives",
            negatives,
            requirement=f"must be about as many as positives, {positives}, where every secret was a fair coin",
            remedy="use certify, which needs no shares of the classes",
        )
    bound = certificates.printed_network_loss(
        empirical_loss,
        count=positives + negatives,
        neurons=neurons,
        barron=barron,
        diameter=diameter,
        failure_probability=delta,
    )
    squared, information, variation = _from_squared(min(1.0, up(1 - bound)))
    return Certificate(
        squared=squared,
        information=information,
        variation=variation,
        plug_in=min(1.0, up(1 - empirical_loss)),
        delta=delta,
        loss="squared",
        method="network",
        form="printed",
        sampling="pairs",
        output=name,
        positive=1,
        negative=-1,
        positives=positives,
        negatives=negatives,
        theorem="Theorem 1 of Diaz, Kairouz, Liao and Sankar 2019",
        assumptions=(
            _caller(f"the network reached the global minimum over all networks of {neurons} neurons on this table"),
            _caller(f"the posterior extends smoothly with Barron constant {float(barron)!r}"),
            _caller(f"both classes have densities on one compact set of diameter {float(diameter)!r} around 0"),
            _caller("rows are independent pairs, and every secret was a fair coin"),
        ),
    )


def _ordered(labels: list[Any], positive: object) -> list[Any]:
    """The negative and the positive secret; bounds are the same whichever is which."""
    if positive is None:
        return labels
    if positive not in labels:
        raise InputError(
            "positive", positive, requirement=f"must be one of the secrets, {labels}", remedy="spell it as in the table"
        )
    return [label for label in labels if label != positive] + [label for label in labels if label == positive]


def _fair(positives: int, negatives: int) -> bool:
    """Whether fair coins may have fallen so: eight standard deviations are granted."""
    return abs(positives - negatives) <= 8 * math.sqrt(positives + negatives)


Bounds = tuple[float, float, float]


def _limits(tally: Tally, plug_ins: plug_in.PlugIns, delta: float, loss: str, form: str, paired: bool) -> Bounds:
    """v, I and TV from confidence limits for one or two of them."""
    sizes: dict[str, Any] = {"positives": tally.positives, "negatives": tally.negatives, "paired": paired}
    share = delta / 2 if loss == "joint" else delta
    if loss == "log":
        limit = certificates.log_sharp if form == "sharp" else certificates.log_closed
        nats = limit(min(1.0, plug_ins.information), failure_probability=share, **sizes)
        squared = leakage.squared_from_information(min(nats, _LN2))
        return squared, nats, leakage.advantage_upper(squared)
    bounds = (1.0, up(_LN2), 1.0)
    if loss in ("squared", "joint"):
        limit = certificates.squared_sharp if form == "sharp" else certificates.squared_closed
        bounds = _from_squared(limit(plug_ins.squared, failure_probability=share, **sizes))
    if loss in ("zero-one", "joint"):
        whole = plug_ins.correct is not None and (paired or tally.positives == tally.negatives)
        if form == "sharp" and whole and plug_ins.correct is not None:
            variation = certificates.variation_exact(plug_ins.correct, failure_probability=share, **sizes)
        else:
            variation = certificates.variation_upper(plug_ins.variation, failure_probability=share, **sizes)
        # v = E η² ≤ E |η| = TV, and then I ≤ v ln 2.
        squared = min(bounds[0], variation)
        bounds = squared, leakage.information_upper(squared), min(bounds[2], variation)
    return bounds


def _printed(
    tally: Tally,
    plug_ins: plug_in.PlugIns,
    delta: float,
    loss: str,
    method: str,
    paired: bool,
    alphabet: int | None,
) -> Bounds:
    if not paired or method != "discrete" or loss not in ("squared", "log"):
        raise NoTheoremError(
            "the printed theorems must have sampling='pairs', a discrete output and the squared or log loss, got "
            f"{'pairs' if paired else 'by class'!r}, {method!r} and {loss!r}; use form='sharp'"
        )
    rows = tally.positives + tally.negatives
    if loss == "squared":
        least = max(0.0, down(1 - plug_ins.squared))
        bound = certificates.printed_squared_loss(least, count=rows, failure_probability=delta)
        return _from_squared(min(1.0, up(1 - bound)))
    if alphabet is None or alphabet < tally.symbols:
        raise InputError(
            "alphabet",
            alphabet,
            requirement=f"must be the number of values that the output can take at all, {tally.symbols} or more",
            remedy="give it, or use form='sharp', which needs none",
        )
    least = max(0.0, down(_LN2 - plug_ins.information))
    bound = certificates.printed_log_loss(least, count=rows, alphabet=alphabet, failure_probability=delta)
    nats = min(up(_LN2), up(_LN2 - bound))
    squared = leakage.squared_from_information(min(nats, _LN2))
    return squared, nats, leakage.advantage_upper(squared)


def _from_squared(squared: float) -> Bounds:
    return squared, leakage.information_upper(squared), leakage.advantage_upper(squared)


def _choices(
    delta: object, loss: object, method: object, form: object, sampling: object, lipschitz: object
) -> dict[str, Any]:
    chosen = {
        "delta": checked.probability("delta", delta, remedy="use a small probability such as 0.05"),
        "loss": checked.choice("loss", loss, LOSSES, remedy="use 'squared' unless another is read"),
        "method": checked.choice("method", method, METHODS, remedy="use 'auto'"),
        "form": checked.choice("form", form, FORMS, remedy="use 'sharp'"),
        "sampling": checked.choice("sampling", sampling, SAMPLINGS, remedy="use 'by class'"),
        "lipschitz": lipschitz,
    }
    if lipschitz is not None:
        chosen["lipschitz"] = checked.number(
            "lipschitz", lipschitz, at_least=0, remedy="give the Lipschitz constant of E[S|T]"
        )
    if (lipschitz is not None) != (method == "lipschitz"):
        raise InputError(
            "lipschitz",
            lipschitz,
            requirement="must be given with method='lipschitz', and only then",
            remedy="state both, or neither",
        )
    return chosen


def _method(tally: Tally, method: str) -> str:
    """The method to use, once it is known to fit what was counted."""
    tally.positive  # noqa: B018 — refuses an empty table and one of one class first
    natural = "noisy" if tally.noise is not None else "lipschitz" if tally.width is not None else "discrete"
    if method == "auto" and natural == "discrete":
        if tally.fractional and tally.unrepeated > 0.5:
            raise NoTheoremError(
                f"a continuous output must be released with noise or have a stated structure, got {tally.symbols} "
                f"different ones in {sum(tally.rows)} rows, for which every valid limit is 1; release it with "
                "Gaussian noise and pass noise=, round it before release, or state method='monotone' or 'lipschitz'"
            )
        return "discrete"
    fits = {natural, "monotone"} if natural == "discrete" and tally.kind in _ORDERED else {natural}
    if method != "auto" and method not in fits:
        raise InputError(
            "method",
            method,
            requirement=f"must be one of {', '.join(sorted(fits))} for what was counted here",
            remedy="pass noise= for 'noisy', width= for 'lipschitz', and one column of numbers for 'monotone'",
        )
    if method == "auto" and natural == "lipschitz":
        raise InputError(
            "method",
            method,
            requirement="must be 'lipschitz' where width is given",
            remedy="state the Lipschitz constant with it, or leave width out",
        )
    return natural if method == "auto" else method


def _theorem(loss: str, form: str) -> str:
    if form == "printed":
        return f"Theorem {'2' if loss == 'squared' else '3'} of Diaz, Kairouz, Liao and Sankar 2019"
    names = {
        "squared": f"Theorem B, {form} form",
        "log": f"Theorem C, {form} form",
        "zero-one": "limits for total variation",
        "joint": f"Theorem B, {form} form, and limits for total variation",
    }
    return f"{names[loss]}: docs/proofs/certificates.md"


def _assumptions(
    tally: Tally, method: str, sampling: str, lipschitz: float | None, alphabet: int | None
) -> tuple[Assumption, ...]:
    rows = {
        "by class": "rows are independent, and given the secret the output is drawn from one law for its class",
        "pairs": "rows are independent pairs from one law, and every secret was a fair coin",
    }[sampling]
    assumed = [
        _caller(rows),
        _caller("columns, method, noise, bins and seed were chosen before this table was seen"),
        Assumption(text="the secret takes two values, both in the table, and nothing is missing", checked_by="code"),
    ]
    if method == "noisy":
        assumed.insert(
            0,
            _caller(
                "the output is released once a record, with fresh Gaussian noise of standard deviation "
                f"{tally.noise!r} in each coordinate, rounded so that low bits tell nothing, and never without"
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
        assumed.append(_caller(f"the output can take {alphabet} values at all"))
    return tuple(assumed)


def _caller(text: str) -> Assumption:
    return Assumption(text=text, checked_by="caller")


def _nothing(tally: Tally, labels: list[Any], delta: float, name: str) -> Certificate:
    """The certificate of a slice with one class: it bounds nothing."""
    rows = dict(zip(tally.labels, tally.rows, strict=False))
    return Certificate(
        squared=1.0,
        information=up(_LN2),
        variation=1.0,
        plug_in=1.0,
        delta=delta,
        loss="none",
        method="none",
        form="none",
        sampling="none",
        output=name,
        positive=labels[1],
        negative=labels[0],
        positives=rows.get(labels[1], 0),
        negatives=rows.get(labels[0], 0),
        theorem="none: only one class is in this slice, and nothing is bounded",
        assumptions=(),
    )
