"""Part 1: noisy features of an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.guarantee import Comparison
from ..core.wording import safe_text
from ..reconstruction import median_bounds
from ..report import Chapter, Figure, Slider, Step, figures
from .digits import Digits
from .wording import percent, percent_down, percent_up

_Array = NDArray[np.float64]

CANDIDATES = 500
SHOWN = 6
BOUNDED = 24  # images whose modes are bounded one by one
SIZES = (0.25, 0.35, 0.5, 0.71, 1.0, 1.41, 2.0, 2.83, 4.0)  # of the noise, relative to the features
ACCURACY = 0.8  # the noise must leave at least this


def trained_network(digits: Digits, seed: int) -> tuple[Any, Any]:
    """A layer whose output is released, and a layer that reads the digit from it, trained on public digits."""
    import torch
    from torch import nn

    images, labels = (torch.tensor(part) for part in digits.others)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        layer, head = nn.Sequential(nn.Linear(64, 64), nn.ReLU()).double(), nn.Linear(64, 10).double()
    optimiser = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.01, weight_decay=1e-4)
    for _ in range(150):
        loss = nn.functional.cross_entropy(head(layer(images)), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return layer.eval(), head.eval()


def part(digits: Digits, seed: int, advance: Callable[[str], None]) -> tuple[Chapter, dict[str, Any]]:
    """Return the chapter and its numbers."""
    import torch

    from .. import reconstruction as recon

    advance("part 1, features: training a small network")
    layer, head = trained_network(digits, seed)
    images, labels = digits.private[0][:CANDIDATES], digits.private[1][:CANDIDATES]
    candidates, public = torch.tensor(images), torch.tensor(digits.others[0])
    with torch.no_grad():
        clean = layer(candidates)
        size = float(clean.square().mean().sqrt())
        unnoisy = float((head(clean).argmax(dim=1).numpy() == labels).mean())
    sigmas = [size * share for share in SIZES]
    advance("part 1, features: how much noise, and what it proves")
    chosen = recon.calibrate(layer, head, candidates, labels, target={"accuracy": ACCURACY}, sigmas=sigmas, seed=seed)
    here = [sigma == chosen.noise.sigma for sigma in sigmas].index(True)
    advance("part 1, features: attacks at every noise")
    named, rebuilt, decoders = [], [], []
    for sigma in sigmas:
        noise = recon.Gaussian(sigma)
        named.append(recon.nearest_candidate(layer, candidates, noise, chosen.identification, seed=seed + 1))
        decoder = recon.trained_decoder(layer, public, noise, epochs=20, width=256, seed=seed)
        with torch.no_grad():
            shown = recon.Dithered(layer, noise)(candidates[:SHOWN])
        rebuilt.append(np.clip(np.asarray(decoder(shown)), 0, 1))
        decoders.append(decoder)
    prior = recon.Gallery(candidates)
    rebuilding = recon.evaluate_decoder(decoders[here], layer, public, prior, chosen.noise, tries=4096, seed=seed + 1)
    advance("part 1, features: bounds for every mode, and twins")
    squares = candidates[:BOUNDED].reshape(-1, 1, 8, 8)
    network = torch.nn.Sequential(torch.nn.Flatten(), layer)
    unbiased = recon.multipoint_bounds(network, squares, chosen.noise)
    anyone = recon.two_point_bounds(network, squares, chosen.noise, box=(0.0, 1.0))
    twins = recon.twins(network, squares[:SHOWN], chosen.noise, box=(0.0, 1.0), seed=seed)
    told = max(twins.guarantee_of(index).value for index in range(SHOWN))
    bounds = {"unbiased estimates": unbiased.std, "anyone, on the worse of two": anyone.rmse}
    spread = median_bounds.prior_std(images)
    medians = [
        Comparison(
            guarantee=median_bounds.median_guarantee(
                method, values, spread=spread, noise=chosen.noise, feature_error=unbiased.feature_error
            )
        )
        for method, values in (("two-point", anyone.rmse), ("multi-point", unbiased.std))
    ]
    naming = Comparison(guarantee=chosen.identification, attacks=(named[here],))
    remaining = Comparison(guarantee=chosen.remaining, attacks=(rebuilding,))
    limits, reads = chosen.identification_upper.tolist(), chosen.accuracies.tolist()
    chapter = Chapter(
        title="Noisy features of an image",
        released=f"{clean.shape[1]} numbers that a small network computes from each image, with fresh Gaussian noise "
        f"of standard deviation {chosen.noise.sigma:.3g}, {SIZES[here]:g} times their size. The rest of the "
        f"network still reads {percent(reads[here])} of the digits ({percent(unnoisy)} without noise).",
        nobody=f"Nobody who holds {CANDIDATES} candidates names the right image more often than "
        f"{percent_up(limits[here])} of the time, and nobody rebuilds the images with a mean squared error below "
        f"{percent_down(chosen.remaining.value)} of their variance.",
        attacker=f"The nearest candidate is the right one {percent(named[here].value)} of the time, almost as often "
        "as the proof allows. A network trained on public digits rebuilds images with an error of "
        f"{percent(rebuilding.value)} of the variance; move the slider to see them.",
        change=_more_noise(reads, limits),
        comparisons=(naming, remaining, *medians),
        sliders=(_noise_slider(images[:SHOWN], reads, limits, chosen.remaining_lower.tolist(), named, rebuilt, here),),
        figures=(
            Figure(
                title="An image, what the bound allows, and a twin",
                caption="Second row: every mode moved up or down at random by the least standard deviation of an "
                "unbiased estimate. Nothing is left of the digit, but this says little, since attackers are biased. "
                "Third row: other valid images with almost the same features. Nobody tells an image from its twin in "
                f"more than {percent_up(told)} of the cases.",
                alternative="Three rows of small images: digits, pure noise, and speckled images that hardly look "
                "like digits.",
                svg=figures.image_rows(
                    {
                        "original": list(images[:SHOWN].reshape(-1, 8, 8)),
                        "moved by the bound for unbiased estimates": _squares(
                            median_bounds.moved_by(
                                unbiased.std[:SHOWN], np.asarray(squares[:SHOWN]), basis="dct", seed=seed
                            )
                        ),
                        "twin: its release differs by less than the noise": _squares(twins.inputs),
                    }
                ),
            ),
            Figure(
                title="Bounds on every mode",
                caption=f"For {BOUNDED} images with 64 cosine modes each. Right: the standard deviation of unbiased "
                "estimates. Left: the root mean squared error of anyone, on the worse of two images. An estimate whose "
                "error is the spread of the images (dashed) has learned nothing.",
                alternative="; ".join(
                    f"{name}: half of the bounds exceed {safe_text(float(np.median(values)), toward='down')}"
                    for name, values in bounds.items()
                )
                + f"; the spread of the images is {spread:.2g}",
                svg=figures.histogram(bounds, marked=(spread, "spread of the images"), x_label="bound, per mode"),
            ),
        ),
    )
    return chapter, {
        "sigma": chosen.noise.sigma,
        "accuracy_without_noise": unnoisy,
        "noise_in_units_of_the_features": SIZES,
        "sigmas": sigmas,
        "accuracy": reads,
        "identification_upper": limits,
        "identification_by_attack": [attack.value for attack in named],
        "remaining_lower": chosen.remaining_lower.tolist(),
        "prior_std": spread,
        "bounds": {"multi-point": unbiased.std.tolist(), "two-point": anyone.rmse.tolist()},
        "twins": {"telling_apart_upper": told, "root_mean_square_difference": twins.difference.tolist()},
    }


def _more_noise(reads: list[float], limits: list[float]) -> str:
    """Say which noise makes naming rare, and what accuracy is left then."""
    rare = next((place for place, limit in enumerate(limits) if limit <= 0.1), len(limits) - 1)
    return (
        f"Noise of {SIZES[rare]:g} times the features keeps everyone below {percent_up(limits[rare])}, but then only "
        f"{percent(reads[rare])} of the digits are read. This network cannot have both: release fewer numbers, or "
        "only the digit that was read."
    )


def _noise_slider(
    images: _Array,
    reads: list[float],
    limits: list[float],
    remaining: list[float],
    named: list[Any],
    rebuilt: list[_Array],
    here: int,
) -> Slider:
    lines = {
        "digits still read correctly": (reads, figures.USEFUL),
        "image named by anyone, at most": (limits, figures.PROVEN),
        "image named by the nearest-candidate attack": ([attack.value for attack in named], figures.ACHIEVED),
    }
    steps = []
    for place, size in enumerate(SIZES):
        reading = (
            f"With noise of {size:g} times the features, {percent(reads[place])} of the digits are read. Nobody names "
            f"the image more often than {percent_up(limits[place])} of the time; the attack did "
            f"{percent(named[place].value)} of the time. At least {percent_down(remaining[place])} of the images' "
            "variance stays hidden from everyone."
        )
        curve = figures.curves(
            SIZES, lines, x_label="noise ÷ size of the features", y_label="share of releases", marked=(size, "here")
        )
        pictures = figures.image_rows(
            {"original": _squares(images), "rebuilt by an attacker, from one release": _squares(rebuilt[place])}
        )
        steps.append(
            Step(
                name=f"{size:g}",
                values=(
                    percent(reads[place]),
                    percent_up(limits[place]),
                    percent(named[place].value),
                    percent_down(remaining[place]),
                ),
                reading=reading,
                pictures=(
                    (f"Accuracy, proven limit and attack all fall as the noise grows; {size:g} is marked.", curve),
                    (f"{SHOWN} digits, and what an attacker makes of them with noise of {size:g}.", pictures),
                ),
            )
        )
    return Slider(
        title="What more noise buys and costs",
        caption="Noise relative to the root mean square of the features. Read: digits that the network still reads. "
        "Nobody names, hidden: proven for all rows together, except with probability 0.001. Attack names: measured.",
        columns=("noise", "read", "nobody names", "attack names", "hidden"),
        steps=tuple(steps),
        chosen=here,
    )


def _squares(images: _Array) -> list[_Array]:
    return list(np.clip(images, 0, 1).reshape(-1, 8, 8))
