"""Rebuilding an input that nobody has seen: the bound under a prior, attacks, and whether real inputs refute it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.guarantee import Attack, Comparison, Guarantee
from ..bayes import BayesBounds, bayes_bound
from ..latent_priors import LatentPrior
from ..posterior_attacks import posterior_attack
from ..priors import Mixture
from ..realism import IN_DOUBT, REFUTED, attack_draws, attack_real, best_of, judged, verdict_of
from .budget import Budget, OutOfTime
from .options import Task

_Array = NDArray[np.float64]

_CHAINS = 0.12
"""The share of the time left that the bound's chains take; they may take longer, as two steps are the fewest."""
_UNTIL = {"bound": 0.4, "draws": 0.5, "real": 0.65}
"""The shares of all the time after which the bound and the attacks by chains are given up."""
_TRIES = 200
"""Inputs that attacks by chains rebuild."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Unseen:
    """What stays hidden of an input under a prior, and whether real inputs refute that prior.

    Attributes
    ----------
    found
        The bound.
    on_prior
        Attacks on draws from the prior.
    on_data
        The best of several attacks on the real inputs, as a share of the prior's variance; None if too few are given.
    by_chains
        Whether there was time for attacks by chains on draws, and on real inputs.
    """

    found: BayesBounds
    on_prior: tuple[Attack, ...]
    on_data: Attack | None
    by_chains: tuple[bool, bool]

    @property
    def best(self) -> Attack:
        """The attack on draws from the prior that certainly leaves least."""
        return best_of(self.on_prior)

    @property
    def verdict(self) -> str:
        """Whether real inputs refute the prior."""
        return verdict_of(self.found.guarantee, self.on_data)

    @property
    def protects(self) -> bool:
        """Whether the bound is offered as one for real inputs."""
        return self.verdict not in (REFUTED, IN_DOUBT)

    @property
    def hurried(self) -> bool:
        """Whether attacks by chains on real inputs were left out for want of time."""
        return self.found.chains is not None and self.on_data is not None and not self.by_chains[1]

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee; where real inputs refute its prior, it says that it is not about them."""
        return judged(self.found.guarantee, self.on_data)

    @property
    def comparison(self) -> Comparison:
        """The guarantee and all attacks; one on real inputs that does better than the prior allows contradicts it."""
        on_data = () if self.on_data is None else (self.on_data,)
        return Comparison(guarantee=self.guarantee, attacks=(*self.on_prior, *on_data))

    @property
    def detail(self) -> dict[str, Any]:
        """For the JSON."""
        chains = self.found.chains
        return {
            "description": self.found.prior,
            "verdict": self.verdict,
            "bound": self.found.remaining,
            "best_attack": self.best.to_dict(),
            "on_data": None if self.on_data is None else self.on_data.to_dict(),
            "steps": None if chains is None else chains.steps,
            "curve": None if chains is None else [list(point) for point in chains.curve],
            "accepted": None if chains is None else chains.accepted,
            "attacked_by_chains": {"draws": self.by_chains[0], "real": self.by_chains[1]},
        }


def unseen(
    features: Any, prior: Mixture | LatentPrior, inputs: _Array, task: Task, budget: Budget, *, must: bool
) -> Unseen:
    """Bound and attack rebuilding an input that is drawn from the prior, and attack the real ones.

    Without `steps`, the bound's chains take a share of the time, and attacks by chains are left out if they take too
    long; the other attacks are tried in any case.

    Raises
    ------
    OutOfTime
        If the time is over before the bound and the other attacks are done, unless this is all that the run does
        (`must`).
    """
    timed = task.steps is None

    def stopping(share: float) -> contextlib.AbstractContextManager[None]:
        return budget.stopping(features, share) if timed and not must else contextlib.nullcontext()

    with stopping(_UNTIL["bound"]):
        found = bayes_bound(
            features,
            prior,
            task.noise,
            basis=task.basis,
            steps=task.steps,
            seconds=max(_CHAINS * budget.left, 0.1) if timed else None,
            seed=task.seed,
            feature_error=task.feature_error,
            releases=task.releases,
            advance=partial(budget.within, "chains from the true input"),
        )
    options: dict[str, Any] = {
        "public": task.public,
        "seed": task.seed + 1,
        "feature_error": task.feature_error,
        "releases": task.releases,
        "tries": _TRIES,
        "advance": budget.within,
    }
    steps = None if found.chains is None else found.chains.steps

    def attacked(attack: Callable[..., Any], name: str) -> tuple[Any, bool]:
        """The attacks, and whether chains are among them; these come last, so that the others are not repeated."""
        by_chains = [steps is not None]

        def in_time(*args: Any, **chosen: Any) -> Attack | None:
            try:
                with budget.stopping(features, _UNTIL[name]) if timed else contextlib.nullcontext():
                    return posterior_attack(*args, **chosen)
            except OutOfTime:
                by_chains[0] = False
                return None

        with stopping(1.0):
            return attack(steps=steps, by_chains=in_time, **options), by_chains[0]

    on_prior, first = attacked(partial(attack_draws, features, prior, task.noise), "draws")
    real = partial(attack_real, features, prior, inputs, task.noise, found.guarantee)
    on_data, second = attacked(real, "real")
    return Unseen(found=found, on_prior=on_prior, on_data=on_data, by_chains=(first, second))
