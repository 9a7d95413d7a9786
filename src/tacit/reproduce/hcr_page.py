"""The page of `tacit reproduce hcr`: the paper's figures, and what goes beyond them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..core.guarantee import Comparison
from ..core.wording import safe_text
from ..reconstruction import median_bounds
from ..reconstruction.release import type_error
from ..reconstruction.study.report import useful_verdict
from ..reconstruction.study.verdicts import LITTLE, naming_verdict
from ..report import BROKEN, WEAK, Figure, Report, Verdict, figures
from ..report.wording import percent, percent_down
from .hcr_task import IN_FLOAT64, MULTI_POINT, SHOWN, Findings, Rebuilding, Run, device_of

_Array = NDArray[np.float64]


def report(run: Run, found: Findings) -> Report:
    """Return the report: the row of the table of results, sentences, guarantees and figures."""
    accuracy, bounds, naming = found.accuracy, found.bounds, found.naming
    remaining, rebuilding = found.remaining, found.rebuilding
    task, setting, spread = run.task, run.setting, median_bounds.prior_std(run.data.images)
    medians = [
        median_bounds.median_guarantee(
            MULTI_POINT if method in (MULTI_POINT, IN_FLOAT64) else "hcr",
            values,
            spread=spread,
            noise=run.noise,
            feature_error=type_error(torch.float64) if method == IN_FLOAT64 else run.feature_error,
            how="" if method in (MULTI_POINT, IN_FLOAT64) else f", size {method}",
        )
        for method, values in bounds.items()
    ]
    searched = [values for method, values in bounds.items() if method not in (MULTI_POINT, IN_FLOAT64)]
    common = len(searched[0]) if searched else 0
    row = {
        "net": setting.title,
        "images": len(run.data.images),
        "search_images": common,
        "inputs": int(run.data.images[0].size),
        "features": run.width,
        "sigma": run.noise.size,
        "accuracy": accuracy["accuracy"],
        "dithered": accuracy["dithered"],
        "accuracy_images": accuracy["images"],
        "accuracy_error": 0.5 / math.sqrt(accuracy["images"]),
        "published_accuracy": None if setting.accuracies is None else setting.accuracies[0],
        "published_dithered": None if setting.accuracies is None else setting.accuracies[1],
        "prior_std": spread,
        "feature_error": run.feature_error,
        "median": {method: median.value for method, median in zip(bounds, medians, strict=True)},
        "median_lowest": {
            method: float(np.median(values[..., : setting.lowest, : setting.lowest]))
            for method, values in bounds.items()
        },
        "least_gain": _least_ratio(bounds[MULTI_POINT][:common], np.maximum(*searched)) if searched else None,
        "naming_limit": naming.guarantee.value,
        "naming_attack": None if naming.nearest is None else naming.nearest.value,
        "remaining": None if remaining is None else remaining.guarantee.value,
        "remaining_attack": None if remaining is None or remaining.nearest is None else remaining.nearest.value,
        "decoder": None if rebuilding is None else rebuilding.attack.value,
        "decoder_images": None if rebuilding is None else rebuilding.images,
    }
    shown = _figures(run, bounds, spread, rebuilding)
    return Report(
        command=f"reproduce hcr {task.net}",
        title=f"The published bounds on {setting.title}, and what goes beyond them",
        summary=_summary(run, row, naming, rebuilding),
        comparisons=(
            *(Comparison(guarantee=median) for median in medians),
            naming,
            *([] if remaining is None else [remaining]),
        ),
        verdicts=_verdicts(row, found),
        opening=tuple(shown.values())[:1],
        figures=tuple(shown.values())[1:],
        detail={
            "row": row,
            "figures": list(shown),
            "decoder": None if rebuilding is None else rebuilding.attack.to_dict(),
            "restarts": task.restarts,
            "repetitions": task.repetitions,
            "seed": task.seed,
            "device": device_of(task).type,
            "folder": str(task.out),
        },
    )


def _verdicts(row: dict[str, Any], found: Findings) -> tuple[Verdict, ...]:
    """Return the cards: naming and rebuilding an image, the paper's own quantity, and what use is left."""
    spread = safe_text(row["prior_std"], toward="nearest", digits=2)
    reason = f"Do not decide by this: real attackers are biased. The images' own standard deviation is {spread}."
    if row["least_gain"] is not None:
        gain = safe_text(row["least_gain"], toward="down", digits=2)
        reason += f" For every mode, this bound is at least {gain} times the published one."
    unbiased = Verdict(
        level=WEAK,
        about="Estimating a mode without bias",
        proven=f"at least {safe_text(row['median'][MULTI_POINT], toward='down')}",
        reason=reason,
        scope="for unbiased estimates of half of the modes",
    )
    rebuilt = _rebuilding_verdict(found)
    return (
        naming_verdict(found.naming),
        *([] if rebuilt is None else [rebuilt]),
        unbiased,
        useful_verdict(row["dithered"], row["accuracy"]),
    )


def _rebuilding_verdict(found: Findings) -> Verdict | None:
    """Return the card about rebuilding: never fine, since real images are no draws from the prior."""
    remaining, rebuilding = found.remaining, found.rebuilding
    if remaining is None and rebuilding is None:
        return None
    attacks = [*([] if remaining is None else remaining.attacks), *([] if rebuilding is None else [rebuilding.attack])]
    level = BROKEN if any(attack.high < LITTLE for attack in attacks) else WEAK
    about, measured = "Rebuilding an image: what stays hidden", ""
    if rebuilding is not None:
        measured = f"A decoder left {percent(min(1.0, rebuilding.attack.value))} of the variance of real images."
    if remaining is None:
        reason = f"{measured} Another one may do better: nothing is proven."
        return Verdict(level=level, about=about, proven="nothing", reason=reason, scope="")
    return Verdict(
        level=level,
        about=about,
        proven=f"at least {percent_down(remaining.guarantee.value)}",
        reached=f"{percent(min(1.0, *(attack.value for attack in remaining.attacks)))} left",
        reason=f"Real images are no draws from this prior. {measured}".rstrip(),
        scope="for draws from a Gaussian fitted to other images",
    )


def _least_ratio(some: _Array, others: _Array) -> float:
    """Return the least of some/others over all entries where the others are positive and finite."""
    there = (others > 0) & np.isfinite(others)
    return float(np.min(some[there] / others[there])) if there.any() else math.inf


def _summary(run: Run, row: dict[str, Any], naming: Comparison, rebuilding: Rebuilding | None) -> tuple[str, ...]:
    setting = run.setting
    classified = "them" if setting.epochs else f"{row['accuracy_images']} images (perhaps from its training set)"
    published = ""
    if setting.accuracies is not None:
        published = " (published: {:.1f} % and {:.1f} %)".format(*(100 * share for share in setting.accuracies))
    common = "these" if row["search_images"] == row["images"] else f"the first {row['search_images']}"
    searched = ""
    if row["search_images"]:
        median = row["median"][f"1/{setting.sizes[0]}"]
        searched = f"at least {safe_text(median, toward='down')} by the published search on {common} images, and "
    sentences = [
        (
            f"{row['images']} images of {row['inputs']} numbers are released as {row['features']} features with "
            f"Gaussian noise of σ = {row['sigma']:.3g}, {setting.scale:g} times the features' root mean square."
        ),
        (
            f"The network classifies {100 * row['accuracy']:.1f} % of {classified} without the noise and "
            f"{100 * row['dithered']:.1f} % with it{published}, with a standard error of up to "
            f"{100 * row['accuracy_error']:.1f} points."
        ),
        (
            f"For half of the modes, unbiased estimates have a standard deviation of {searched}"
            f"at least {safe_text(row['median'][MULTI_POINT], toward='down')} by the multi-point bound; that of the "
            f"images themselves is {row['prior_std']:.2g}. This holds for features that the network computes in "
            f"float32, with a relative error of {row['feature_error']:.2g}; for float64 features, the multi-point "
            f"bound is {safe_text(row['median'][IN_FLOAT64], toward='down')}. Neither says anything about attackers "
            "with prior knowledge, who are biased."
        ),
        (
            "An adversary who holds these images names the released one with probability at most "
            f"{safe_text(naming.guarantee.value, toward='up')}."
        ),
    ]
    if row["least_gain"] is not None:
        sentences.insert(
            3,
            f"For every mode of {common} images, the multi-point bound is at least "
            f"{safe_text(row['least_gain'], toward='down')} times that of the published search.",
        )
    if row["remaining"] is not None:
        sentences.append(
            "For images drawn from a Gaussian that was fitted to other images, which real images are "
            f"not, at least {safe_text(row['remaining'], toward='down', digits=2)} of their variance remains, whoever "
            f"rebuilds them; the best attack leaves {row['remaining_attack']:.2g}."
        )
    if rebuilding is not None:
        share = safe_text(rebuilding.attack.value, toward="nearest", digits=2)
        sentences.append(
            f"A decoder ({rebuilding.attack.method}) rebuilds {rebuilding.images} unseen images with a mean squared "
            f"error of {share} of their variance."
        )
    return tuple(sentences)


def _figures(run: Run, bounds: dict[str, _Array], spread: float, rebuilding: Rebuilding | None) -> dict[str, Figure]:
    """Return the figures by the names of their files."""
    setting = run.setting
    searched = {
        f"published search, {name}": values for name, values in bounds.items() if name not in (MULTI_POINT, IN_FLOAT64)
    }
    lowest = {name: values[..., : setting.lowest, : setting.lowest] for name, values in searched.items()}
    beside = {**dict(list(searched.items())[:1]), MULTI_POINT: bounds[MULTI_POINT], IN_FLOAT64: bounds[IN_FLOAT64]}
    block = f"the {setting.lowest} × {setting.lowest} lowest modes"
    found = {"multi-point": _histogram("The multi-point bound, all modes", beside, spread)}
    if searched:
        found = {
            "published": _histogram("The published search, all modes", searched, spread),
            "lowest": _histogram(f"The published search, {block}", lowest, spread),
            "multi-point": _histogram("The same next to the multi-point bound, all modes", beside, spread),
        }
    return {"images": _pictures(run, bounds, rebuilding), **found}


def _histogram(title: str, bounds: dict[str, _Array], spread: float) -> Figure:
    most = 1e9 * spread
    beyond = (
        "; bounds beyond a billion times that are counted there" if max(map(np.max, bounds.values())) > most else ""
    )
    return Figure(
        title=title,
        caption="The least standard deviation of unbiased estimates, over all modes and images. "
        f"The dashed line is the images' own spread{beyond}.",
        alternative="; ".join(
            f"{name}: half of the bounds exceed {safe_text(float(np.median(values)), toward='down')}"
            for name, values in bounds.items()
        ),
        svg=figures.histogram(
            {name: np.minimum(values, most) for name, values in bounds.items()},
            marked=(spread, "spread of the images"),
            x_label="bound of a mode",
        ),
    )


def _pictures(run: Run, bounds: dict[str, _Array], rebuilding: Rebuilding | None) -> Figure:
    count = min(SHOWN, *(len(values) for values in bounds.values()))
    images = run.data.images[:count]
    rows = {"original": images}
    for method, values in bounds.items():
        if method == IN_FLOAT64:
            continue
        name = method if method == MULTI_POINT else f"published search, {method}"
        rows[f"moved by the bound: {name}"] = median_bounds.moved_by(
            values[:count], images, basis="dct", seed=run.task.seed
        )
    caption = (
        "Every cosine mode moved up or down at random by the least standard deviation of an unbiased estimate, and "
        "clipped at black and white."
    )
    if rebuilding is not None:
        rows["rebuilt by a decoder that never saw it"] = rebuilding.shown[:count]
        caption += " Real attackers are biased: the last row is what one of them makes of the noisy features."
    return Figure(
        title="What the bounds mean for an image",
        caption=caption,
        alternative=f"Rows of images: {', '.join(rows)}.",
        svg=figures.image_rows({name: run.data.pictures(values) for name, values in rows.items()}),
    )
