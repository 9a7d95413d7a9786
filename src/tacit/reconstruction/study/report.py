"""What the report says and shows beside the comparisons."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ...core.guarantee import Attack, Comparison, Guarantee
from ...core.wording import chance_text, safe_text
from ...report import BROKEN, FINE, WEAK, Change, Figure, Verdict, figures
from ...report.document import CROSSING
from ...report.wording import attack_words, bound_words, duration, percent, percent_down, percent_up
from ..noise import Uniform, gaussian_of, unrounded
from ..posterior_bounds import PosteriorBounds
from ..realism import REFUTED
from .options import PER_INPUT, Data, Task
from .unseen import Unseen
from .verdicts import naming_verdict, rebuilding_verdict

_Array = NDArray[np.float64]

LOWEST = 8
_RIVALS = 6
_CLOSE = 0.9  # bound ÷ attack, below which they are called far apart
_RISEN = 1.02  # from one point of the curve to the next, above which it still rises


def summary(
    comparisons: Mapping[str, Comparison],
    data: Data,
    task: Task,
    *,
    candidates: int,
    counts: Mapping[str, int],
    hidden: Unseen | None = None,
) -> tuple[str, ...]:
    """Put the results into words: first the bounds for real attackers, last those that say nothing about them."""
    mode = "mode (one cosine wave of the image)" if task.basis == "dct" else "mode (one entry of the input)"
    sentences = [] if hidden is None else _rebuilding_unseen(hidden)
    if "identify" in comparisons:
        sentences.append(_naming(comparisons["identify"], candidates))
    if "bayes" in comparisons and hidden is None:
        sentences.append(_rebuilding(comparisons["bayes"], candidates))

    def counted(*methods: str) -> str:
        done = {f"{counts[method]} input{'s' * (counts[method] > 1)}" for method in methods if method in counts}
        return " or ".join(sorted(done)) or "the inputs"

    silent = [method for method in PER_INPUT if method in comparisons and not comparisons[method].guarantee.value]
    if "two-point" in comparisons and "two-point" not in silent:
        sentences.append(
            f"For half of all modes of {counted('two-point')}, each input has a partner such that every estimate of "
            f"the {mode} has a root mean squared error of {comparisons['two-point'].guarantee.bound_text} on one of "
            "the two. On the other it may be exact, and the partner may look like nothing in the data."
        )
    unbiased = [
        f"{comparisons[method].guarantee.bound_text}{how}"
        for method, how in (("multi-point", ""), ("hcr", " by the published search"))
        if method in comparisons and method not in silent
    ]
    if unbiased:
        sentences.append(
            f"Do not decide by this: for half of all modes of {counted('multi-point', 'hcr')}, unbiased estimates of "
            f"the {mode} have a standard deviation of {', '.join(unbiased)}; the inputs' own is {data.spread:.2g}, and "
            f"their range is {data.box[1] - data.box[0]:.2g}. Unbiased estimates use no knowledge of what inputs look "
            "like. Real attackers do."
        )
    for method in silent:
        vacuous = method == "hcr" and isinstance(unrounded(task.noise), Uniform)
        why = ": under uniform noise, a release can rule an input out" if vacuous else ""
        sentences.append(f"The {method} bounds are 0 for at least half of all modes and say nothing{why}.")
    if "identify" not in comparisons:
        gaussian = gaussian_of(task.noise) is not None
        how = "the method identify bounds that" if gaussian else "only Gaussian noise has a theorem for that"
        sentences.append(
            f"Not computed: how often somebody who holds a list of inputs can name the one released; {how}."
        )
    often = f", each at most {task.releases} times" if task.releases > 1 else ""
    named = task.limit is not None and set(comparisons) & set(PER_INPUT)
    alone = f", {len(data.inputs)} of them bounded one by one" if named else ""
    sentences.append(
        f"{candidates} inputs of shape {data.inputs.shape[1:]}, released as features with noise {task.noise!r}{often}"
        f"{alone}."
    )
    if task.untrained:
        sentences.append(
            f"No weights were given: everything here is about the module as {task.model} builds it. If other weights "
            "are released, run this again with them."
        )
    return tuple(sentences)


def verdicts(comparisons: Mapping[str, Comparison], hidden: Unseen | None) -> tuple[Verdict, ...]:
    """Return the cards: naming, rebuilding or, where neither was asked for, that nothing speaks about attackers."""
    cards = []
    if "identify" in comparisons:
        cards.append(naming_verdict(comparisons["identify"]))
    if hidden is not None:
        cards.append(
            rebuilding_verdict(
                hidden.guarantee,
                hidden.on_data or hidden.best,
                prior=hidden.verdict,
                contradicted=hidden.comparison.contradicted,
                hurried=hidden.hurried,
            )
        )
    elif "bayes" in comparisons:
        found = comparisons["bayes"]
        cards.append(rebuilding_verdict(found.guarantee, found.attacks[0], contradicted=found.contradicted))
    if not cards:
        method, found = next(iter(comparisons.items()))
        cards.append(
            Verdict(
                level=WEAK,
                about=f"Estimating one mode ({method})",
                proven=found.guarantee.bound_text,
                reason="This alone says little about real attackers: add the methods identify and bayes.",
            )
        )
    return tuple(cards)


def useful_verdict(noisy: float, clean: float) -> Verdict:
    """Return the card about accuracy with the user's noise, beside that without noise."""
    level = FINE if noisy >= 0.9 * clean else WEAK if noisy >= 0.5 * clean else BROKEN
    words = {FINE: "The noise costs little.", WEAK: "The noise costs a lot.", BROKEN: "Little of the use is left."}
    return Verdict(
        level=level,
        about="Use: inputs classified correctly",
        proven=percent(noisy),
        measured=True,
        reason=f"{words[level]} Without noise it is {percent(clean)}.",
    )


def in_time(missing: Mapping[str, float], counts: Mapping[str, int]) -> tuple[str, ...]:
    """Say what there was no time for; empty if all was done."""
    parts = [f"{method} ({counts[method]} inputs done)" if method in counts else method for method in missing]
    return (f"There was no time for all of {', '.join(parts)}.",) if parts else ()


def left_out(missing: Mapping[str, float], counts: Mapping[str, int], task: Task) -> tuple[Change, ...]:
    """Return what there was no time for, about how long it takes, and the command that runs it."""
    if not missing:
        return ()
    parts = [f"{method} beyond {counts[method]} inputs" if method in counts else method for method in missing]
    known = sum(rest for rest in missing.values() if math.isfinite(rest))
    sure = all(math.isfinite(rest) for rest in missing.values())
    seconds = 1.2 * known if sure else 10 * max(known, task.seconds)
    price = f"about {duration(known)}." if sure else f"more than {duration(max(known, task.seconds))}."
    # A prior is for bayes alone: without that, the command would be refused.
    names = ",".join(["bayes"] * (task.states_prior and "bayes" not in missing) + list(missing))
    if task.command:
        command = f"{task.command} --method {names} --seconds {max(seconds, 1):.0f} --resume"
    else:
        command = f'bound(…, method="{names}", seconds={max(seconds, 1):.0f})'
    return (Change(what=f"There was no time for: {', '.join(parts)}.", price=price, command=command),)


def _naming(comparison: Comparison, candidates: int) -> str:
    guarantee, low, reached = _of(comparison)
    verdict = ""
    if low > 0.5:
        verdict = "Most inputs are given away. "
    elif guarantee.value > 0.5:
        verdict = "It is not ruled out that most inputs are given away. "
    different = int(guarantee.detail["candidates"])
    of_them = "" if different == candidates else f" ({different} different ones)"
    return (
        f"{verdict}Somebody who holds these {candidates} inputs{of_them} names the one released with probability "
        f"{bound_words(guarantee)} ({guarantee.chance_text}). An attack reached {reached}; guessing reaches "
        f"{percent(float(guarantee.detail['guessing']))}."
    )


def _rebuilding(comparison: Comparison, candidates: int) -> str:
    guarantee, _, reached = _of(comparison)
    return (
        f"{_hardly(guarantee)}Somebody who holds these {candidates} inputs rebuilds the one released with a mean "
        f"squared error of {bound_words(guarantee)} of their variance ({guarantee.chance_text}): 0 % is exact, 100 % "
        "no better than the average of all. The best possible guess, their mean weighted by the release, left "
        f"{reached}."
    )


def _rebuilding_unseen(hidden: Unseen) -> list[str]:
    """What stays hidden under the prior; first of all, whether real inputs refute it."""
    found, best, on_data = hidden.found, hidden.best, hidden.on_data
    low, high = between(found.remaining, best)
    prior = found.prior.partition(" (")[0]  # without what only tells it from others
    if on_data is not None and not hidden.protects:
        sure = "The bound protects no real input." if hidden.verdict == REFUTED else "They are too few to be sure."
        first = (
            f"The prior is {hidden.verdict}: of the real inputs an attack left "
            f"{percent(on_data.value)} of the prior's variance, less than the {low} that nobody "
            f"goes below for draws from that prior, {prior}. {sure} Real inputs have structure that the prior "
            "lacks, and attackers use it."
        )
        second = (
            f"For draws from the prior, and for nothing else, between {low} and {high} of the variance stays hidden. A "
            "better prior may hold for the real inputs: train a generator on public ones."
        )
        return [first, second]
    sentences = [
        f"{_hardly(found.guarantee)}Between {low} and {high} of the variance stays hidden, whoever rebuilds it.",
        (
            f"That is for an adversary who knows this of an input: it is drawn from {prior}. 0 % means that it is "
            f"rebuilt exactly, 100 % that nothing is. The first number is proven ({found.guarantee.chance_text}), "
            f"the second is what the best attack leaves at most ({chance_text(best.failure_probability)})."
        ),
    ]
    if found.remaining < _CLOSE * best.value and found.chains is not None:
        sentences.append(
            "Bound and attack are far apart: the chains have not reached all inputs that are as likely. More seconds "
            "or steps tighten the bound."
        )
    if on_data is None:
        sentences.append(
            "Whether real inputs are like that was not checked: there are fewer than 30, or they are all the same. An "
            "attacker who knows more about them may do better."
        )
    else:
        sentences.append(
            "Real inputs do not refute this: of them the best attack left "
            f"{percent(on_data.value)}. That is no proof: an attacker who knows more about real "
            "inputs than this prior says may do better."
        )
    return sentences


def between(bound: float, attack: Attack) -> tuple[str, str]:
    """The share that stays hidden, from both sides: what is proven, rounded down, and what an attack leaves, up.

    Nobody leaves more than everything: the prior's mean is a guess, too.
    """
    return percent_down(bound), percent_up(max(min(attack.high, 1.0), bound))


def _hardly(guarantee: Guarantee) -> str:
    return "Hardly anything is proven to stay hidden. " if guarantee.value < 0.1 else ""


def _of(comparison: Comparison) -> tuple[Guarantee, float, str]:
    """Return a guarantee, the lower end of the first attack on it, and that attack's value as text."""
    if not comparison.attacks:
        raise ValueError("only methods that are attacked are read like this")
    first = comparison.attacks[0]
    return comparison.guarantee, first.low, percent(first.value)


def hidden_figures(comparisons: Mapping[str, Comparison], hidden: Unseen | None, data: Data) -> tuple[Figure, ...]:
    """Return the bound and the attacks on one line; with a prior, also rivals of inputs and the curve over steps."""
    if "bayes" not in comparisons:
        return ()
    bound = comparisons["bayes"].guarantee.value
    if hidden is None:
        attacks = {"the best guess of somebody who holds the inputs": comparisons["bayes"].attacks[0]}
        return (sandwich(bound, attacks),)
    attacks = {"the best attack on draws from the prior": hidden.best}
    if hidden.on_data is not None:
        attacks["the best attack on real inputs"] = hidden.on_data
    whose = "" if hidden.protects else f" The shaded part is about draws from the prior, which is {hidden.verdict}."
    made = [sandwich(bound, attacks, whose)]
    if hidden.found.chains is not None:
        made += [*_rivals(hidden.found.chains, data), _rising(hidden.found.chains, hidden.best)]
    return tuple(made)


def sandwich(bound: float, attacks: Mapping[str, Attack], caveat: str = "") -> Figure:
    """Return what is proven and what attacks left on one line; the first attack is the one on what the bound is about.

    Parameters
    ----------
    bound
        The share that stays hidden.
    attacks
        By what they are called.
    caveat
        A sentence about whom the bound does not protect.
    """
    (name, first), *others = attacks.items()
    low, high = between(bound, first)
    left = f"{name[:1].upper()}{name[1:]} leaves {high} at most."
    for other, attack in others:
        if attack.value < first.value:
            left += f" {other[:1].upper()}{other[1:]} did better: it left {percent(attack.value)}."
    return Figure(
        title="How much stays hidden",
        caption="0 % is an exact copy of the input, 100 % is to have learned nothing. Nobody gets into the shaded "
        f"part: {low} or more stays hidden. {left}{caveat}"
        + f" {CROSSING}"
        * (any(one.low < bound for one in attacks.values()) and not caveat),
        alternative=f"On a line from 0 to 100 %, nobody gets below {low}; "
        + "; ".join(f"{name} left {attack_words(attack)}" for name, attack in attacks.items()),
        svg=figures.sandwich(bound, {name: (one.low, one.value, one.high) for name, one in attacks.items()}),
    )


def _rivals(chains: PosteriorBounds, data: Data) -> list[Figure]:
    """Return inputs drawn from the prior above others that are as likely given the release, where they are images."""
    shape = data.inputs.shape[1:]
    if not is_image(shape):
        return []
    shown = chains.examples[:_RIVALS].reshape(-1, 1 + chains.ends, *shape)
    names = ("released: drawn from the prior", "as likely", "as likely, too")
    rows = {name: shown[:, place] for place, name in enumerate(names[: shown.shape[1]])}
    return [
        Figure(
            title="Given the release, these inputs are all equally likely",
            caption="Each column is one release. The top image was released; chains that know the release alone found "
            "those below, which are as likely. What differs within a column is what nobody can know.",
            alternative=f"{len(shown)} images in a row, and below each of them {len(rows) - 1} that are as likely.",
            svg=figures.image_rows({name: as_pictures(images, data.box) for name, images in rows.items()}),
        )
    ]


def _rising(chains: PosteriorBounds, best: Attack) -> Figure:
    steps, shares = zip(*chains.curve, strict=True)
    rises = len(shares) > 1 and shares[-1] > _RISEN * shares[-2]
    return Figure(
        title="Would more steps help?",
        caption="The mean share that stays hidden, by the number of steps of a chain. Its last point, less a margin "
        "for chance, is the bound. "
        + ("It still rises: more steps would tighten the bound." if rises else "It hardly rises any more."),
        alternative=f"The share goes from {percent(shares[0])} with {steps[0]} steps to {percent(shares[-1])} with "
        f"{steps[-1]}; the bound is {percent_down(chains.remaining)}, the best attack left {percent(best.value)}.",
        svg=figures.rising(steps, shares, proven=chains.remaining, achieved=best.value),
    )


def figures_of(bounds: dict[str, _Array], data: Data, task: Task) -> tuple[Figure, ...]:
    """Return histograms of the bounds."""
    made, inputs = [], data.inputs
    done = sorted({len(values) for values in bounds.values()})
    of_them = " or ".join(map(str, done))
    made += _histograms(f"Bounds over all modes of {of_them} inputs", bounds, data.spread)
    if task.basis == "dct" and min(inputs.shape[-2:]) > LOWEST:
        lowest = {method: values[..., :LOWEST, :LOWEST] for method, values in bounds.items()}
        made += _histograms(f"The same for the {LOWEST} × {LOWEST} lowest modes", lowest, data.spread)
    return tuple(made)


def _histograms(title: str, bounds: dict[str, _Array], spread: float) -> list[Figure]:
    """Return one histogram, or none where every bound is 0 or infinite."""
    shown = {method: values[np.isfinite(values) & (values > 0)] for method, values in bounds.items()}
    shown = {method: values for method, values in shown.items() if values.size}
    if not shown:
        return []
    left = sum(values.size for values in bounds.values()) - sum(values.size for values in shown.values())
    return [
        Figure(
            title=title,
            caption="Lower bounds: on the standard deviation of unbiased estimates (multi-point, hcr), and on the "
            "root mean squared error of any estimate on the worse of two inputs (two-point). The dashed line is the "
            "inputs' own standard deviation." + f" Not shown: {left} bounds that are 0 or infinite." * bool(left),
            alternative="; ".join(
                f"{method}: half of the bounds exceed {safe_text(float(np.median(values)), toward='down')}"
                for method, values in shown.items()
            ),
            svg=figures.histogram(shown, marked=(spread, "spread of the inputs"), x_label="bound of a mode"),
        )
    ]


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether inputs of this shape can be drawn: grey, or with one or three channels in front."""
    return len(shape) == 2 or (len(shape) == 3 and shape[0] in (1, 3))


def as_pictures(images: _Array, box: tuple[float, float]) -> list[_Array]:
    """Return images of inputs, scaled from their range to [0, 1]."""
    scaled = np.clip((images - box[0]) / (box[1] - box[0]), 0, 1)
    if scaled.ndim == 3:
        return list(scaled)
    return [image[0] if len(image) == 1 else image.transpose(1, 2, 0) for image in scaled]
