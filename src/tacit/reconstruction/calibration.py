"""How much noise? What the features are still good for, against what they give away."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..core import validate
from ..core.display import Carded, Rows
from ..core.errors import InputError
from ..core.guarantee import Attack, Guarantee
from .bayes import bayes_bound
from .identification import identification_bound
from .latent_priors import LatentPrior
from .noise import Gaussian
from .priors import Gallery, Mixture
from .realism import IN_DOUBT, REFUTED, attack_real, judged, verdict_of
from .release import as_array, exact, loaded, open_release

if TYPE_CHECKING:
    from ..report import Figure

_Array = NDArray[np.float64]

GOALS = ("accuracy", "identification", "remaining")
REFINEMENTS = 4


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Calibration(Carded):
    """The chosen noise, what is proven about it, and the whole curve.

    All limits hold together, except with the failure probability that the guarantees state: it is shared among all
    noises tried, so choosing one after looking is allowed. Accuracies are measured, not proven. For a target accuracy,
    a random half of the inputs chooses the noise and the accuracies are those of the other half.

    Attributes
    ----------
    noise
        The chosen noise.
    accuracy
        The share of noisy releases that are still classified correctly, with that noise.
    identification
        The guarantee on naming the input, for that noise.
    remaining
        The guarantee on rebuilding the input, for that noise.
    on_data
        With a prior, the best attack on the inputs given, with that noise; None without one, or with too few inputs.
    verdict
        Whether that attack refutes the prior, so that `remaining` protects no real input: "refuted", "in doubt", "not
        refuted" or "not checked". With a prior, `remaining` states it in its detail and, unless it is "not refuted", in
        its first assumption.
    sigmas
        The standard deviations tried, in increasing order.
    accuracies, identification_upper, remaining_lower
        Accuracy and both limits for each of `sigmas`.
    """

    noise: Gaussian
    accuracy: float
    identification: Guarantee
    remaining: Guarantee
    sigmas: _Array
    accuracies: _Array
    identification_upper: _Array
    remaining_lower: _Array
    on_data: Attack | None = None

    @property
    def verdict(self) -> str:
        """Whether the inputs refute the prior."""
        return verdict_of(self.remaining, self.on_data)

    def plot(self) -> Figure:
        """Draw accuracy and both limits against the noise."""
        from ..report import Figure, figures

        here = float(self.sigmas[self.sigmas == self.noise.sigma][0])
        some = [int(np.flatnonzero(self.sigmas == here)[0])]
        for place, sigma in enumerate(self.sigmas):  # marks closer together would be unreadable
            if all(abs(math.log(sigma / self.sigmas[other])) > math.log(1.7) for other in some):
                some.append(place)
        some.sort()
        lines = {
            "classified correctly": (self.accuracies, figures.USEFUL),
            "input named by anyone: at most": (self.identification_upper, figures.PROVEN),
            "share of variance hidden: at least": (self.remaining_lower, figures.INK),
        }
        return Figure(
            title="What more noise hides and costs",
            caption="Accuracies are measured. The limits are proven and hold for all noises together. "
            f"{self._about_the_prior}",
            alternative="As the noise grows, accuracy and the chance of naming the input fall; the hidden share grows.",
            svg=figures.curves(
                [float(f"{sigma:.2g}") for sigma in self.sigmas[some]],
                {name: (values[some].tolist(), colour) for name, (values, colour) in lines.items()},
                x_label="standard deviation of the noise",
                y_label="share",
                marked=(here, "chosen"),
            ),
        )

    @property
    def _about_the_prior(self) -> str:
        """Whom the hidden share is about, in a sentence."""
        if "verdict" not in self.remaining.detail:
            return "The hidden share is that for somebody who holds the inputs themselves."
        tried = (
            "" if self.on_data is None else f": with the chosen noise an attack left {self.on_data.value:.3g} of them"
        )
        about = "The hidden share is about draws from the prior. That real inputs are such draws is"
        return f"{about} {self.verdict}{tried}."

    def _card(self) -> tuple[str, Rows]:
        title = f"Noise of standard deviation {self.noise.sigma:.4g}"
        if self.verdict in (REFUTED, IN_DOUBT) and self.on_data is not None:
            title = f"The prior is {self.verdict}: an attack left {self.on_data.value:.3g} of the real inputs. {title}"
        return (
            title,
            [
                ("accuracy, measured", f"{self.accuracy:.3g}"),
                ("proven", (str(self.identification), str(self.remaining))),
                ("prior", self._about_the_prior),
                ("chosen from", f"{len(self.sigmas)} noises; the limits hold for all of them together"),
            ],
        )


def calibrate(
    features: nn.Module,
    head: Callable[[Tensor], Tensor],
    inputs: Any,
    labels: Any,
    *,
    target: Mapping[str, float],
    prior: Mixture | LatentPrior | None = None,
    public: Any = None,
    sigmas: Sequence[float] | None = None,
    draws: int = 10_000,
    steps: int = 20,
    failure_probability: float = 0.001,
    seed: int = 0,
    feature_error: float | None = None,
    releases: int = 1,
) -> Calibration:
    """Choose the noise for one target, and return the trade-off it was chosen from.

    Parameters
    ----------
    features
        The torch module whose output is released.
    head
        The function that turns features into class scores.
    inputs
        The inputs, one per row. They are also the candidates that the adversary holds.
    labels
        The class number of each input.
    target
        One of `{"accuracy": 0.9}` (the most noise that keeps this accuracy), `{"identification": 0.1}` (the least noise
        with which nobody names the input more often) and `{"remaining": 0.5}` (the least noise that leaves this share
        of the variance, whoever rebuilds the inputs).
    prior
        What is known of inputs by an adversary who rebuilds them: a `Mixture`, `Spectrum` or `Generator`. Without it,
        and without `public`, this adversary holds the inputs themselves.
    public
        Public inputs: the prior is a Gaussian fitted to them unless `prior` is given, and attackers of the real inputs
        learn from them.
    sigmas
        The standard deviations to try. By default sixteen from 1/16 to 16 times the features' root mean square, then
        four between the two that are next to the target.
    draws
        Random draws for each noise.
    steps
        Of the chains for each noise, with a prior; an even number.
    failure_probability
        The chance that any limit, for any of the noises tried, is wrong.
    seed
        For the random draws.
    feature_error
        The share of their norm by which released features may differ from those computed here.
    releases
        How often the same input is released, at most, each time with fresh noise; the head sees one release.

    Raises
    ------
    InputError
        If no noise that was tried meets the target, or a value cannot be used.
    """
    goal, value = _goal(target)
    failure = validate.probability("failure_probability", failure_probability, remedy="use 0.001")
    seed = validate.whole("seed", seed, at_least=0, remedy="use 0")
    release = open_release(features, inputs, feature_error=feature_error, only_these=True)
    clean = release.features(release.inputs)
    truth = class_numbers(labels, clean)
    refinements = REFINEMENTS if sigmas is None else 0
    if sigmas is None:
        size = float(clean.square().mean().sqrt())
        sigmas = (size * np.geomspace(1 / 16, 16, 16)).tolist()
    grid = [validate.number("each of sigmas", sigma, above=0, remedy="use 1.0") for sigma in sigmas]
    if not grid:
        raise InputError("sigmas", sigmas, requirement="must not be empty", remedy="leave it out")
    scores, candidates = in_float64(head), Gallery(inputs)
    known: Any = candidates
    if prior is not None or public is not None:
        known = Mixture.fitted(public) if prior is None else prior
    choosing, reporting = _halves(candidates, seed) if goal == "accuracy" else 2 * (torch.arange(len(clean)),)
    share = failure / (2 * (len(grid) + refinements))

    def trial(sigma: float, seed: int) -> _Trial:
        noise = Gaussian(sigma)
        options: dict[str, Any] = {
            "draws": draws,
            "failure_probability": share,
            "seed": seed,
            "feature_error": feature_error,
            "releases": releases,
        }
        generator = torch.Generator().manual_seed(seed)
        sought, reported = (
            _accuracy(clean[rows], scores, truth[rows], noise, draws, generator) for rows in (choosing, reporting)
        )
        return _Trial(
            sigma=sigma,
            sought=sought,
            accuracy=reported,
            identification=identification_bound(features, inputs, noise, **options),
            remaining=bayes_bound(features, known, noise, basis="pixel", steps=steps, **options).guarantee,
        )

    trials = sorted((trial(sigma, seed) for sigma in grid), key=_sigma)
    for number in range(refinements):
        ends = _next_to(trials, goal, value)
        if ends is None:
            break
        # Earlier draws decide where this noise lies, so its own draws must be new.
        trials = sorted([*trials, trial(math.sqrt(ends[0] * ends[1]), seed + 1 + number)], key=_sigma)
    good = [one for one in trials if one.meets(goal, value)]
    if not good:
        reached = [one.reached(goal) for one in trials]
        best = min(reached) if goal == "identification" else max(reached)
        raise InputError(
            goal,
            value,
            requirement=f"must be within reach: the best of {len(trials)} noises gives {best:.3g}",
            remedy="ask for less, or try other sigmas",
        )
    chosen = good[-1] if goal == "accuracy" else good[0]
    remaining = dataclasses.replace(chosen.remaining, failure_probability=failure)
    on_data = None
    if known is not candidates:
        on_data = attack_real(
            features,
            known,
            as_array(release.inputs),
            Gaussian(chosen.sigma),
            remaining,
            public=None if public is None else validate.array("public", loaded("public", public), remedy="pass inputs"),
            steps=steps,
            seed=seed,
            feature_error=feature_error,
            releases=releases,
        )
        remaining = judged(remaining, on_data)
    return Calibration(
        noise=Gaussian(chosen.sigma),
        accuracy=chosen.accuracy,
        identification=dataclasses.replace(chosen.identification, failure_probability=failure),
        remaining=remaining,
        on_data=on_data,
        sigmas=np.array([one.sigma for one in trials]),
        accuracies=np.array([one.accuracy for one in trials]),
        identification_upper=np.array([one.identification.value for one in trials]),
        remaining_lower=np.array([one.remaining.value for one in trials]),
    )


@dataclass(frozen=True, kw_only=True)
class _Trial:
    """One noise and what it gives."""

    sigma: float
    sought: float
    accuracy: float
    identification: Guarantee
    remaining: Guarantee

    def reached(self, goal: str) -> float:
        return {
            "accuracy": self.sought,
            "identification": self.identification.value,
            "remaining": self.remaining.value,
        }[goal]

    def meets(self, goal: str, value: float) -> bool:
        return self.reached(goal) <= value if goal == "identification" else self.reached(goal) >= value


def _sigma(trial: _Trial) -> float:
    return trial.sigma


def _next_to(trials: Sequence[_Trial], goal: str, value: float) -> tuple[float, float] | None:
    """Return the neighbours between which the target stops or starts to be met; the chosen noise is one of them."""
    pairs = [
        (one.sigma, other.sigma)
        for one, other in itertools.pairwise(trials)
        if one.meets(goal, value) == (goal == "accuracy") != other.meets(goal, value)
    ]
    if not pairs:
        return None
    return pairs[-1] if goal == "accuracy" else pairs[0]


def _halves(candidates: Gallery, seed: int) -> tuple[Tensor, Tensor]:
    """Split the rows at random, to choose by and to report on; equal inputs stay together."""
    order = torch.randperm(len(candidates.inputs), generator=torch.Generator().manual_seed(seed))
    chosen = torch.isin(torch.tensor(candidates.places), order[: len(order) // 2])
    return chosen.nonzero()[:, 0], (~chosen).nonzero()[:, 0]


def _goal(target: object) -> tuple[str, float]:
    remedy = 'write target={"accuracy": 0.9}'
    if not isinstance(target, Mapping) or len(target) != 1:
        raise InputError("target", target, requirement=f"must hold one of {', '.join(GOALS)}", remedy=remedy)
    [(goal, value)] = target.items()
    goal = validate.choice("the name of target", goal, GOALS, remedy=remedy)
    return goal, validate.probability(goal, value, remedy="use a share such as 0.9")


def class_numbers(labels: Any, clean: Tensor) -> Tensor:
    """Return the class number of each row of features."""
    found = np.asarray(validate.detached(labels))
    if found.shape != (len(clean),) or found.dtype.kind not in "iu":
        raise InputError(
            "labels",
            found.shape if found.dtype.kind in "iu" else found.dtype,
            requirement=f"must be {len(clean)} whole numbers, one per input",
            remedy="pass class numbers",
        )
    return torch.tensor(found.astype(np.int64), device=clean.device)


def in_float64(head: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a module in float64 and evaluation mode; a callable as it is."""
    return copy.deepcopy(head).to(torch.float64).eval() if isinstance(head, nn.Module) else head


def _accuracy(
    clean: Tensor,
    head: Callable[[Tensor], Tensor],
    truth: Tensor,
    noise: Gaussian,
    draws: int,
    generator: torch.Generator,
) -> float:
    """Return the share of noisy releases that are still classified correctly."""
    chosen = torch.randint(len(clean), (draws,), generator=generator).to(clean.device)
    noisy = clean[chosen] + noise.sample(clean[chosen].cpu(), generator).to(clean.device)
    with exact():
        guesses = head(noisy).argmax(dim=1)
    return float(np.mean(as_array(guesses == truth[chosen])))
