"""The demo: one noisy release of a small network's features, what nobody can learn from it, and what attackers got.

Runs on scikit-learn's bundled digits in seconds. Nothing here is used by the rest of the library.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import checked
from .guarantee import Adversary, Assumption, Attack, Comparison, Guarantee, safe_text
from .numerics import down, up
from .report import Figure, Report, figures
from .theory.confidence import binomial_lower, binomial_upper, bounded_mean_lower, bounded_mean_upper
from .theory.divergences import gaussian_chi_square, gaussian_total_variation
from .theory.estimation import gallery_identification, gallery_mse, hcr_variance, two_point_mse, two_point_success

_Array = NDArray[np.float64]

STEPS = 6
GALLERY = 500
DRAWS = 20_000
FAILURE = 0.001
NOISE_LEVELS = (0.25, 0.5, 1.0, 2.0, 4.0)
FINEST_BIT = 16  # see "low bits leak" in docs/sharp-edges.md
ROUNDING = 1e-12  # far above the relative rounding error of a norm of 64 differences

_ONE_RELEASE = Assumption(
    text="the adversary sees one noisy release of the image and nothing else about it", checked_by="caller"
)
_CANDIDATES = Assumption(
    text=f"the released image is one of the {GALLERY} candidates, each equally likely", checked_by="caller"
)
_UNBIASED = Assumption(
    text="the estimator is right on average for every image with pixels from 0 to 1; real attackers seldom are",
    checked_by="caller",
)
_EITHER = Assumption(text="the released image is one of these two, each equally likely", checked_by="caller")
_ROUNDED = Assumption(
    text=f"released numbers are rounded to 1/{2**FINEST_BIT} of that standard deviation, so that no low bits leak",
    checked_by="caller",
)
_GENERATOR = Assumption(text="the pseudo-random draws of the computation behave as independent", checked_by="caller")
_FINITE = Assumption(text="all features are finite numbers, one row an image", checked_by="code")


@dataclass(frozen=True, kw_only=True)
class _Release:
    """What the demo publishes: hidden features of a trained network, plus noise."""

    weights: tuple[_Array, _Array]
    offsets: tuple[_Array, _Array]
    public: _Array
    gallery: _Array
    gallery_labels: NDArray[np.int64]
    sigma: float

    def features(self, images: _Array) -> _Array:
        return np.maximum(images @ self.weights[0] + self.offsets[0], 0.0)

    def noisy(self, features: _Array, generator: np.random.Generator) -> _Array:
        """What is published of these features: with noise, and rounded to a grid that its low bits cannot pass."""
        grid = self.sigma / 2**FINEST_BIT
        exact = features + self.sigma * generator.standard_normal(features.shape)
        rounded: _Array = grid * np.round(exact / grid)
        return rounded

    @property
    def noise(self) -> tuple[Assumption, ...]:
        """What every guarantee about a release rests on."""
        text = (
            f"the noise is Gaussian with standard deviation {safe_text(self.sigma, toward='up', digits=6)} or more in "
            "every feature, independent of the image and between features, and drawn afresh for every release"
        )
        return (Assumption(text=text, checked_by="caller"), _ROUNDED, _ONE_RELEASE)

    def classes(self, features: _Array) -> NDArray[np.int64]:
        classes: NDArray[np.int64] = np.argmax(features @ self.weights[1] + self.offsets[1], axis=1)
        return classes


def demo(*, seed: int = 0, advance: Callable[[str], None] = lambda _: None) -> Report:
    """Train, release, bound, attack, compare. `advance` hears the name of each of the STEPS as it begins."""
    seed = checked.whole("seed", seed, at_least=0, remedy="use 0")
    advance("training a small network on digits")
    release = _trained(seed)
    generator = np.random.default_rng([seed, 2])
    advance("naming the image: bound and attack")
    identification = _identification(release, seed, generator)
    advance("rebuilding the image: bound and attack")
    reconstruction, rebuilt = _reconstruction(release, seed, generator)
    advance("telling two images apart: bound and attack")
    pair_comparisons, pair = _two_images(release, generator)
    advance("unbiased estimates: bound")
    unbiased, pixel_std = _unbiased(release)
    advance("more and less noise")
    accuracy, bounds, attacks = _trade_off(release, seed, generator)

    return Report(
        command="demo",
        title="What nobody can learn from the noisy features of a digit",
        summary=_summary(release, accuracy[NOISE_LEVELS.index(1.0)], identification.guarantee.value),
        comparisons=(identification, reconstruction, *pair_comparisons, unbiased),
        figures=(
            Figure(
                title="What more noise buys, and costs",
                caption="Noise in units of the features' root mean square. The proven line is an upper limit for every "
                f"attacker, all five points together except with probability {FAILURE:g}.",
                alternative="Accuracy and the proven limit on naming the image both fall as the noise grows: "
                + "; ".join(
                    f"at {level:g}, accuracy {100 * right:.0f} % and limit {_percent_up(limit)}"
                    for level, right, limit in zip(NOISE_LEVELS, accuracy, bounds, strict=True)
                ),
                svg=figures.curves(
                    NOISE_LEVELS,
                    {
                        "digits still read correctly": (accuracy, figures.USEFUL),
                        "image named by anyone, at most": (bounds, figures.PROVEN),
                        "image named by the nearest-candidate attack": (attacks, figures.ACHIEVED),
                    },
                    x_label="noise ÷ size of the features",
                    y_label="share of releases",
                    marked=(1.0, "this report"),
                ),
            ),
            Figure(
                title="What an attacker rebuilt",
                caption="Six images, what a linear decoder trained on other digits makes of their noisy features, and "
                "the two images of guarantees 3 and 4: of different digits, the two whose features are closest.",
                alternative="Rows of small images: originals, blurred reconstructions in which most digits can be "
                "recognised, and two different digits that look alike.",
                svg=figures.image_rows(
                    {
                        "original": list(release.gallery[_six_digits(release)].reshape(-1, 8, 8)),
                        "rebuilt from noisy features": list(rebuilt.reshape(-1, 8, 8)),
                        "the closest two of different digits": list(release.gallery[list(pair)].reshape(-1, 8, 8)),
                    }
                ),
            ),
        ),
        detail={
            "seed": seed,
            "sigma": release.sigma,
            "accuracy_without_noise": _clean_accuracy(release),
            "noise_levels": NOISE_LEVELS,
            "accuracy": accuracy,
            "identification_upper": bounds,
            "identification_by_attack": attacks,
            "pixel_std_of_the_gallery": pixel_std,
        },
    )


def _summary(release: _Release, accuracy: float, named: float) -> tuple[str, ...]:
    released = (
        f"A network that reads handwritten digits releases {release.weights[0].shape[1]} features of each image "
        f"with Gaussian noise of standard deviation {release.sigma:.3g}, the features' own size. It still reads "
        f"{100 * accuracy:.0f} % of the digits ({100 * _clean_accuracy(release):.0f} % without noise)."
    )
    protection = (
        f"Nobody who holds {GALLERY} candidates names the right one more often than {_percent_up(named)} of the "
        f"time, which is {named * GALLERY:.0f} times blind guessing: this much noise protects little. More noise "
        "protects better, and leaves fewer digits readable."
    )
    unbiased = (
        "The last guarantee speaks of unbiased estimates alone. Attackers who start from what digits look like are "
        "biased, and for them the first four count."
    )
    return released, protection, unbiased


def _trained(seed: int) -> _Release:
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    images, labels = load_digits(return_X_y=True)
    images = images / 16.0
    # Streams [seed, 1] and [seed, 2]: [seed, 0] would repeat the stream of `seed` alone, which the bounds draw from.
    order = np.random.default_rng([seed, 1]).permutation(len(images))
    public, private = order[GALLERY:], order[:GALLERY]
    network = MLPClassifier((64,), alpha=0.01, max_iter=1000, random_state=seed)
    with warnings.catch_warnings():
        # scikit-learn answers Ctrl-C with a warning and a half-trained network.
        warnings.filterwarnings("error", message="Training interrupted by user")
        try:
            network.fit(images[public], labels[public])
        except UserWarning:
            raise KeyboardInterrupt from None
    weights, offsets = tuple(network.coefs_), tuple(network.intercepts_)
    size = np.sqrt(np.mean(np.maximum(images[public] @ weights[0] + offsets[0], 0.0) ** 2))
    return _Release(
        weights=weights,
        offsets=offsets,
        public=images[public],
        gallery=images[private],
        gallery_labels=labels[private],
        sigma=float(size),
    )


def _identification(release: _Release, seed: int, generator: np.random.Generator) -> Comparison:
    adversary = Adversary.PRIOR.scoped(f"{GALLERY} equally likely images that the adversary holds")
    quantity = "probability of naming the released image"
    features = release.features(release.gallery)
    guarantee = Guarantee(
        quantity=quantity,
        side="at_most",
        value=gallery_identification(
            features, sigma=release.sigma, draws=DRAWS, failure_probability=FAILURE, seed=seed
        ),
        adversary=adversary,
        theorem="the best guess is the most probable candidate: theory.estimation.gallery_identification",
        assumptions=(*release.noise, _CANDIDATES, _GENERATOR, _FINITE),
        failure_probability=FAILURE,
        detail={"candidates": GALLERY, "draws": DRAWS},
    )
    truth, noisy = _noisy_gallery(release, generator)
    hits = int(np.sum(_nearest(features, noisy) == truth))
    attack = _success(quantity, hits, adversary, "nearest candidate in feature space")
    return Comparison(guarantee=guarantee, attack=attack)


def _reconstruction(release: _Release, seed: int, generator: np.random.Generator) -> tuple[Comparison, _Array]:
    from sklearn.linear_model import Ridge

    adversary = Adversary.PRIOR.scoped(f"{GALLERY} equally likely images that the adversary holds")
    quantity = "mean squared error per pixel of the rebuilt image (pixels from 0 to 1)"
    guarantee = Guarantee(
        quantity=quantity,
        side="at_least",
        value=gallery_mse(
            release.features(release.gallery),
            release.gallery,
            sigma=release.sigma,
            draws=DRAWS,
            failure_probability=FAILURE,
            seed=seed,
        ),
        adversary=adversary,
        theorem="the best estimate is the posterior mean: theory.estimation.gallery_mse",
        assumptions=(*release.noise, _CANDIDATES, _GENERATOR, _FINITE),
        failure_probability=FAILURE,
        detail={"variance_of_the_gallery": float(release.gallery.var(axis=0).mean())},
    )
    copies = 10
    features = np.tile(release.features(release.public), (copies, 1))
    decoder = Ridge().fit(release.noisy(features, generator), np.tile(release.public, (copies, 1)))
    truth, noisy = _noisy_gallery(release, generator)
    errors = np.mean((np.clip(decoder.predict(noisy), 0, 1) - release.gallery[truth]) ** 2, axis=1)
    attack = Attack(
        quantity=quantity,
        value=float(errors.mean()),
        low=bounded_mean_lower(errors.mean(), count=DRAWS, failure_probability=FAILURE / 2),
        high=bounded_mean_upper(errors.mean(), count=DRAWS, failure_probability=FAILURE / 2),
        confidence=1 - FAILURE,
        adversary=adversary,
        method="linear decoder (ridge regression) trained on noisy features of other digits",
    )
    shown = release.noisy(release.features(release.gallery[_six_digits(release)]), generator)
    return Comparison(guarantee=guarantee, attack=attack), np.clip(decoder.predict(shown), 0, 1)


def _two_images(release: _Release, generator: np.random.Generator) -> tuple[tuple[Comparison, ...], tuple[int, int]]:
    features = release.features(release.gallery)
    distances = np.linalg.norm(features[:, None] - features[None], axis=2) / release.sigma
    distances[release.gallery_labels[:, None] == release.gallery_labels[None]] = np.inf
    one, other = (int(index) for index in np.unravel_index(distances.argmin(), distances.shape))
    distance = up(float(distances[one, other]), relative=ROUNDING)
    total_variation = float(gaussian_total_variation(distance))

    either = Adversary.PRIOR.scoped("two equally likely images that the adversary holds")
    telling = "probability of telling which of two images was released (the closest two of different digits)"
    told = Guarantee(
        quantity=telling,
        side="at_most",
        value=float(two_point_success(total_variation)),
        adversary=either,
        theorem="Neyman–Pearson: theory.estimation.two_point_success",
        assumptions=(*release.noise, _EITHER, _FINITE),
        detail={"distance": distance},
    )
    truth = generator.integers(2, size=DRAWS)
    pair = features[[one, other]]
    noisy = release.noisy(pair[truth], generator)
    guesses = (noisy - pair.mean(axis=0)) @ (pair[1] - pair[0]) > 0
    attack = _success(telling, int(np.sum(guesses == truth)), either, "likelihood-ratio test")

    rebuilding = "mean squared error per pixel on the worse of these two images (pixels from 0 to 1)"
    root_mean_square = np.sqrt(np.mean((release.gallery[other] - release.gallery[one]) ** 2))
    shift = down(float(root_mean_square), relative=ROUNDING)
    posterior = 1 / (1 + np.exp(-((noisy - pair.mean(axis=0)) @ (pair[1] - pair[0])) / release.sigma**2))
    # Along the segment between the two images the squared error per pixel is a share of shift².
    shares = (posterior - truth) ** 2
    limits = [_mean_limits(shares[truth == side]) for side in (0, 1)]
    low, value, high = (shift**2 * max(limit[position] for limit in limits) for position in range(3))
    rebuilt = Guarantee(
        quantity=rebuilding,
        side="at_least",
        value=float(two_point_mse(shift, total_variation=total_variation)),
        adversary=Adversary.ANY,
        theorem="Le Cam: theory.estimation.two_point_mse",
        assumptions=(*release.noise, _FINITE),
        detail={"root_mean_square_difference_of_the_images": shift},
    )
    best = Attack(
        quantity=rebuilding,
        value=value,
        low=low,
        high=high,
        confidence=1 - FAILURE,
        adversary=Adversary.ANY,
        method="posterior mean of the two images",
    )
    return (Comparison(guarantee=told, attack=attack), Comparison(guarantee=rebuilt, attack=best)), (one, other)


def _unbiased(release: _Release) -> tuple[Comparison, float]:
    image, pixel = release.gallery[0], int(np.argmax(release.gallery.var(axis=0)))
    others = np.tile(image, (101, 1))
    others[:, pixel] = np.linspace(0.0, 1.0, len(others))  # every other value that the pixel of an image can have
    shifts = down(np.abs(others[:, pixel] - image[pixel]))
    moved = np.linalg.norm(release.features(others) - release.features(image[None]), axis=1)
    chi_square = gaussian_chi_square(up(moved / release.sigma, relative=ROUNDING))
    variances = hcr_variance(np.maximum(shifts, 0.0), chi_square=chi_square)
    spread = float(release.gallery[:, pixel].std())
    guarantee = Guarantee(
        quantity=f"standard deviation of an estimate of one pixel of the first image, row {pixel // 8 + 1} column "
        f"{pixel % 8 + 1} (over all images that pixel's is {safe_text(spread, toward='nearest', digits=2)})",
        side="at_least",
        value=down(float(np.sqrt(variances.max()))),
        adversary=Adversary.UNBIASED,
        theorem="Hammersley–Chapman–Robbins: theory.estimation.hcr_variance",
        assumptions=(_UNBIASED, *release.noise, _FINITE),
        detail={"step": float(shifts[variances.argmax()]), "standard_deviation_over_images": spread},
    )
    return Comparison(guarantee=guarantee), spread


def _trade_off(release: _Release, seed: int, generator: np.random.Generator) -> tuple[list[float], ...]:
    features = release.features(release.gallery)
    accuracy, bounds, attacks = [], [], []
    for level in NOISE_LEVELS:
        louder = dataclasses.replace(release, sigma=level * release.sigma)
        truth, noisy = _noisy_gallery(louder, generator)
        accuracy.append(float(np.mean(release.classes(noisy) == release.gallery_labels[truth])))
        attacks.append(float(np.mean(_nearest(features, noisy) == truth)))
        share = FAILURE / len(NOISE_LEVELS)
        bounds.append(
            gallery_identification(features, sigma=louder.sigma, draws=DRAWS, failure_probability=share, seed=seed)
        )
    return accuracy, bounds, attacks


def _nearest(features: _Array, noisy: _Array) -> NDArray[np.intp]:
    """The candidate whose features are closest to each release."""
    nearest: NDArray[np.intp] = np.argmin(np.sum(features**2, axis=1) - 2 * noisy @ features.T, axis=1)
    return nearest


def _noisy_gallery(release: _Release, generator: np.random.Generator) -> tuple[NDArray[np.int64], _Array]:
    truth = generator.integers(GALLERY, size=DRAWS)
    return truth, release.noisy(release.features(release.gallery[truth]), generator)


def _success(quantity: str, successes: int, adversary: Adversary, method: str) -> Attack:
    return Attack(
        quantity=quantity,
        value=successes / DRAWS,
        low=binomial_lower(successes, trials=DRAWS, failure_probability=FAILURE / 2),
        high=binomial_upper(successes, trials=DRAWS, failure_probability=FAILURE / 2),
        confidence=1 - FAILURE,
        adversary=adversary,
        method=method,
    )


def _mean_limits(values: _Array) -> tuple[float, float, float]:
    """Lower limit, mean, upper limit; a quarter of FAILURE each, for the two images of a pair."""
    mean = float(values.mean())
    share = FAILURE / 4
    return (
        bounded_mean_lower(mean, count=len(values), failure_probability=share),
        mean,
        bounded_mean_upper(mean, count=len(values), failure_probability=share),
    )


def _six_digits(release: _Release) -> NDArray[np.intp]:
    return np.unique(release.gallery_labels, return_index=True)[1][:6]


def _clean_accuracy(release: _Release) -> float:
    return float(np.mean(release.classes(release.features(release.gallery)) == release.gallery_labels))


def _percent_up(probability: float) -> str:
    return f"{safe_text(100 * probability, toward='up', digits=2)} %"
