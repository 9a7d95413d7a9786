"""Part 1: noisy features of an image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.guarantee import Attack, Comparison
from ..core.wording import safe_text
from ..reconstruction import median_bounds
from ..reconstruction.realism import NOT_REFUTED, attack_draws, attack_real, best_of, verdict_of
from ..reconstruction.study.report import between, sandwich
from ..reconstruction.study.slider import Position, noise_slider
from ..reconstruction.study.verdicts import naming_verdict
from ..report import Chapter, Figure, Slider, figures
from ..report.wording import percent, percent_down, percent_up
from .digits import Digits

if TYPE_CHECKING:
    from ..reconstruction import Gaussian, PosteriorBounds

_Array = NDArray[np.float64]

CANDIDATES = 500
SHOWN = 6
BOUNDED = 24  # images whose modes are bounded one by one
SIZES = (0.25, 0.35, 0.5, 0.71, 1.0, 1.41, 2.0, 2.83, 4.0)  # of the noise, relative to the features
ACCURACY = 0.8  # the noise must leave at least this
JITTER = 0.1  # of the entries of public digits, which makes the prior
STEPS = 20  # of the chains


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
    advance("part 1, features: what stays hidden from those who hold no private image")
    unseen = _Unseen.found(layer, public, images, chosen.noise, seed)
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
                method,
                values,
                spread=spread,
                noise=chosen.noise,
                feature_error=unbiased.feature_error,
                evidence=evidence,
            )
        )
        for method, values, evidence in (
            ("two-point", anyone.rmse, anyone.evidence()),
            ("multi-point", unbiased.std, None),
        )
    ]
    naming = Comparison(guarantee=chosen.identification, attacks=(named[here],))
    remaining = Comparison(guarantee=chosen.remaining, attacks=(rebuilding,))
    limits, reads = chosen.identification_upper.tolist(), chosen.accuracies.tolist()
    chapter = Chapter(
        title="Noisy features of an image",
        verdict=replace(naming_verdict(naming), about="Noisy features of an image: naming the image"),
        released=f"{clean.shape[1]} numbers that a small network computes from each image, with fresh Gaussian noise "
        f"{SIZES[here]:g} times their size. The rest of the network still reads {percent(reads[here])} of the digits "
        f"({percent(unnoisy)} without noise).",
        nobody=f"Somebody who holds {CANDIDATES} candidates names at most {percent_up(limits[here])} of the images, "
        f"and leaves at least {percent_down(chosen.remaining.value)} of their variance. {unseen.sentence}",
        attacker=f"The nearest candidate is the right one {percent(named[here].value)} of the time. A network trained "
        f"on public digits leaves {percent(rebuilding.value)} of the variance: move the slider to see it.",
        change=_more_noise(reads, limits),
        comparisons=(naming, remaining, unseen.comparison, *medians),
        sliders=(_slider(images[:SHOWN], reads, limits, chosen.remaining_lower.tolist(), named, rebuilt, here),),
        figures=(
            *unseen.figures,
            Figure(
                title="An image and a twin",
                caption="Second row: other valid images with almost the same features. Nobody tells an image from its "
                f"twin in more than {percent_up(told)} of the cases.",
                alternative="Two rows of small images: digits, and speckled images that hardly look like digits.",
                svg=figures.image_rows(
                    {
                        "original": list(images[:SHOWN].reshape(-1, 8, 8)),
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
        "unseen": unseen.detail,
        "prior_std": spread,
        "bounds": {"multi-point": unbiased.std.tolist(), "two-point": anyone.rmse.tolist()},
        "twins": {"telling_apart_upper": told, "root_mean_square_difference": twins.difference.tolist()},
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class _Unseen:
    """What stays hidden from somebody who holds no private image, but public ones that look alike."""

    bound: PosteriorBounds
    on_prior: Attack
    on_data: Attack

    @classmethod
    def found(cls, layer: Any, public: Any, images: _Array, noise: Gaussian, seed: int) -> _Unseen:
        from .. import reconstruction as recon

        prior = recon.Jittered(public, jitter=JITTER)
        bound = recon.posterior_bound(layer, prior, noise, steps=STEPS, seed=seed)
        options: dict[str, Any] = {"public": np.asarray(public), "steps": STEPS, "seed": seed + 1}
        options["feature_error"] = None
        on_prior = attack_draws(layer, prior, noise, **options)
        on_data = attack_real(layer, prior, images, noise, bound.guarantee, **options)
        assert on_data is not None  # noqa: S101 — there are images enough
        return cls(bound=bound, on_prior=best_of(on_prior), on_data=on_data)

    @property
    def comparison(self) -> Comparison:
        return Comparison(guarantee=self.bound.guarantee, attacks=(self.on_prior, self.on_data))

    @property
    def sentence(self) -> str:
        """What stays hidden, and whether private images refute the prior."""
        low, high = between(self.bound.remaining, self.on_prior)
        return (
            "From those who hold none, but know that they look like public digits with pixels moved by about "
            f"{JITTER:g}, {low} to {high} stays hidden; the private images do not refute this prior: an attack left "
            f"{percent(self.on_data.value)}."
            if verdict_of(self.bound.guarantee, self.on_data) == NOT_REFUTED
            else f"From those who know that they look like public digits, {low} to {high} would stay hidden, but this "
            f"prior is {verdict_of(self.bound.guarantee, self.on_data)}: an attack left {percent(self.on_data.value)}."
        )

    @property
    def figures(self) -> tuple[Figure, ...]:
        names = ("released: drawn from the prior", "as likely", "as likely, too")
        attacks = {
            "the best attack on draws from the prior": self.on_prior,
            "the best attack on the private images": self.on_data,
        }
        rivals = Figure(
            title="Given the release, these images are all equally likely",
            caption="Each column is one release. The top image was released; chains that know the release alone found "
            "those below, which are as likely. What differs within a column is what nobody can know.",
            alternative=f"{SHOWN} small images in a row, and below each of them two others.",
            svg=figures.image_rows(
                {name: _squares(self.bound.examples[:SHOWN, place]) for place, name in enumerate(names)}
            ),
        )
        return sandwich(self.bound.remaining, attacks), rivals

    @property
    def detail(self) -> dict[str, Any]:
        return {
            "bound": self.bound.remaining,
            "curve": self.bound.curve,
            "best_attack": self.on_prior.value,
            "on_data": self.on_data.value,
            "verdict": verdict_of(self.bound.guarantee, self.on_data),
        }


def _more_noise(reads: list[float], limits: list[float]) -> str:
    """Say which noise makes naming rare, and what accuracy is left then."""
    rare = next((place for place, limit in enumerate(limits) if limit <= 0.1), len(limits) - 1)
    return (
        f"Noise of {SIZES[rare]:g} times the features: nobody names more than {percent_up(limits[rare])}. Its price: "
        f"only {percent(reads[rare])} of the digits are read. To keep both, release fewer numbers, or the digit "
        "itself."
    )


def _slider(
    images: _Array,
    reads: list[float],
    limits: list[float],
    remaining: list[float],
    named: list[Any],
    rebuilt: list[_Array],
    here: int,
) -> Slider:
    positions = [
        Position(
            size=size,
            named_upper=limits[place],
            named=named[place].value,
            accuracy=reads[place],
            hidden_lower=remaining[place],
            images={"original": _squares(images), "rebuilt by an attacker, from one release": _squares(rebuilt[place])},
        )
        for place, size in enumerate(SIZES)
    ]
    return noise_slider(
        positions,
        chosen=here,
        axis="noise ÷ size of the features",
        unit="the features",
        things="digits",
        note="Noise relative to the root mean square of the features. What nobody exceeds, and what stays hidden, is "
        "proven for all rows together, except with probability 0.001. The attack and the accuracy are measured.",
    )


def _squares(images: _Array) -> list[_Array]:
    return list(np.clip(images, 0, 1).reshape(-1, 8, 8))
