"""Both sides together: the best attack found ≤ what is leaked ≤ the certificate, and whether a ceiling is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..core import validate
from ..core.display import card
from ..core.errors import InputError
from ..core.guarantee import Attack, Comparison
from ..core.wording import chance_text, safe_text
from .attacks import LEAST_ROWS, attempts
from .attempt import Attempt
from .certificate import Certificate
from .certifying import certify
from .columns import column, multiplicities, output_columns
from .planning import rows_needed
from .sample import Sample

ATTACK_ROWS = 100_000
"""Rows that attacks are fitted to and tested on, drawn at random from larger tables."""
_ATTACKS_SHARE = 0.1
"""Of delta, and on top of it, for the attacks' intervals."""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A certificate, attacks on the same output, and a ceiling for the advantage, if one is required.

    The attacks' intervals hold together only as far as their confidences add up: `failure_probability` adds them.
    """

    certificate: Certificate
    attacks: tuple[Attack, ...] = ()
    require_advantage: float | None = None

    def __post_init__(self) -> None:
        for attack in self.attacks:
            if not isinstance(attack, Attack):
                raise InputError("attacks", attack, requirement="must be Attacks", remedy="build an Attack from each")
        if self.require_advantage is not None:
            validate.number(
                "require_advantage", self.require_advantage, above=0, at_most=1, remedy="give a ceiling, e.g. 0.1"
            )
        _ = self.comparison  # refuses attacks on another output, or measured in another quantity

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """The certificate beside all attacks: one comparison, in a tuple as reports take them."""
        return (self.comparison,)

    @property
    def comparison(self) -> Comparison:
        """The certificate beside all attacks."""
        return Comparison(guarantee=self.certificate.guarantee, attacks=self.attacks)

    @property
    def low(self) -> float:
        """What the best attack has shown to leak, as an advantage; 0 without attacks."""
        return max(0.0, *(attack.low for attack in self.attacks), 0.0)

    @property
    def high(self) -> float:
        """What nobody's advantage exceeds."""
        return self.certificate.advantage

    @property
    def failure_probability(self) -> float:
        """With at most this probability the truth lies outside of [low, high]."""
        return min(1.0, self.certificate.delta + sum(attack.failure_probability for attack in self.attacks))

    @property
    def contradicted(self) -> bool:
        """Whether an attack got where the certificate says nobody gets: then an assumption is wrong."""
        return self.comparison.contradicted

    @property
    def met(self) -> bool:
        """Whether the ceiling, if there is one, is proven to be kept, and no attack contradicts the proof."""
        if self.contradicted:
            return False
        return self.require_advantage is None or self.certificate.meets(advantage=self.require_advantage)

    def _repr_html_(self) -> str:
        attacks = tuple(f"{attack.value_text}: {attack.method}" for attack in self.attacks)
        doubts = (self.certificate.caution,) if self.certificate.caution else ()
        return card(self.verdict, [("mind", doubts), ("attacks", attacks), *self.certificate.guarantee.facts])

    @property
    def verdict(self) -> str:
        """One sentence: what is leaked, and whether the ceiling is kept, broken, or not yet decided.

        Where the certificate rests on something that no table can show, the sentence begins with it.
        """
        name, chance = self.certificate.output, chance_text(self.failure_probability)
        low, high = safe_text(self.low, toward="down"), safe_text(self.high, toward="up")
        condition = self.certificate.condition
        if self.contradicted:
            if self.certificate.method in ("noisy", "noise added"):
                condition = "the noise is fresh, and as strong as stated"
            wrong = f"that {condition}, or that rows are independent" if condition else "that rows are independent"
            return (
                f"Contradicted: an attack reached {low} by {name} where the certificate allows {high}; an assumption "
                f"is wrong, most likely {wrong}."
            )
        leak = f"the largest advantage of anyone who sees only {name} lies between {low} and {high}, {chance}"
        ceiling = self.require_advantage
        if ceiling is None:
            return _sentence(condition, f"{leak}.")
        allowed = f"{float(ceiling)!r} is allowed"
        if self.met:
            return _sentence(condition, f"met: {leak}; {allowed}.")
        if self.low > ceiling:
            # Shown by an attack, whatever the certificate rests on.
            return (
                f"Broken: the largest advantage of anyone who sees only {name} is {low} or more, {chance}; {allowed}."
            )
        rows = self.certificate.positives + self.certificate.negatives
        loss = "zero-one" if self.certificate.loss in ("zero-one", "joint") else "squared"
        needed = rows_needed(ceiling, delta=self.certificate.delta, loss=loss, values=1)
        needed -= self.certificate.sampling == "pairs"  # an odd number may do
        more = f"it takes at least {needed} rows even where nothing leaks" if needed > rows else "more rows may decide"
        return _sentence(condition, f"not proven: {leak}; {allowed}, and {rows} rows do not show it: {more}.")


def _sentence(condition: str, claim: str) -> str:
    claim = f"if {condition}, {claim}" if condition else claim
    return claim[:1].upper() + claim[1:]


def audit(
    secret: object,
    output: object,
    *,
    delta: float = 0.05,
    attacks: Sequence[Attack] | Literal["all"] = "all",
    attack_rows: int = ATTACK_ROWS,
    require_advantage: float | None = None,
    noise: float | None = None,
    weights: object = None,
    seed: int = 0,
    **options: Any,
) -> Audit:
    """A two-sided interval for what is leaked, and a verdict against a ceiling; options are those of `certify`.

    "all" runs the attacks of `attempts`, on at most `attack_rows` rows drawn at random, as `tacit audit` does; their
    intervals fail with a tenth of `delta`, on top of it. Attacks of your own have to be made on rows of their own,
    name the certificate's output as their adversary and its `quantity("advantage")` as their quantity.
    """
    if attacks != "all" and not isinstance(attacks, list | tuple):
        remedy = "use 'all', or [] for none"
        raise InputError("attacks", attacks, requirement="must be 'all' or a list of Attacks", remedy=remedy)
    validate.whole("attack_rows", attack_rows, at_least=0, remedy="use 0 for no attacks")
    certificate = certify(secret, output, delta=delta, noise=noise, weights=weights, seed=seed, **options)
    if attacks == "all":
        secrets, sample = column("secret", secret), Sample(attack_rows, seed)
        sample.add(secrets, output_columns(output, rows=len(secrets)), multiplicities(weights, len(secrets)))
        tried = attacked(certificate, sample, delta=delta, noise=noise, seed=seed)
        attacks = tuple(attempt.attack for attempt in tried)
    return Audit(certificate=certificate, attacks=tuple(attacks), require_advantage=require_advantage)


def attacked(
    certificate: Certificate, sample: Sample, *, delta: float, noise: float | None, seed: int
) -> tuple[Attempt, ...]:
    """What attacks reach on a sample of the table; nothing where it has too few rows of a class."""
    if sample.fewest < LEAST_ROWS:
        return ()
    secrets, columns = sample.table()
    return attempts(
        secrets,
        columns,
        certificate=certificate,
        noise=noise,
        failure_probability=_ATTACKS_SHARE * delta,
        seed=seed,
    )
