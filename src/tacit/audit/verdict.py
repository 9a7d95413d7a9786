"""A certificate and attacks together: what is leaked lies between them, and a ceiling is kept or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ..core import validate
from ..core.deprecation import renamed
from ..core.display import Carded, Rows
from ..core.errors import InputError
from ..core.guarantee import Attack, Comparison, Guarantee
from ..core.wording import chance_text, safe_text
from .attacks import LEAST_ROWS, attempts
from .attempt import Attempt
from .certificate import Certificate
from .certifying import ContinuousOutputError, certify
from .columns import SeveralValuesError, column, multiplicities, output_columns
from .groups import Repeats, drawn, grouped
from .guess_attacks import GuessAttack, guess_attacks
from .guesses import GuessCertificate, certify_classes, certify_number
from .planning import rows_needed
from .sample import Sample

ATTACK_ROWS = 100_000
"""How many rows attacks are fitted to and tested on; they are drawn at random from larger tables."""
ATTACKS_SHARE = 0.1
"""Of the certificate's failure probability, and on top of it, for the attacks' intervals."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Audit(Carded):
    """A certificate, attacks on the same output, and a ceiling for the advantage if one is required.

    Attributes
    ----------
    certificate
        What nobody exceeds.
    attacks
        What adversaries reached, measured in the certificate's `quantity("advantage")`.
    require_advantage
        The ceiling, or None.
    copied
        (r, f) where f different rows occur r times each, which independent rows hardly do; None otherwise. No ceiling
        then counts as proven.
    """

    certificate: Certificate | GuessCertificate
    attacks: tuple[Attack, ...] = ()
    require_advantage: float | None = None
    copied: tuple[int, int] | None = None

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
        """`comparison` in a tuple, as reports take it."""
        return (self.comparison,)

    @property
    def comparison(self) -> Comparison:
        """The certificate beside all attacks."""
        return Comparison(guarantee=self.guarantee, attacks=self.attacks)

    @property
    def guarantee(self) -> Guarantee:
        """The certificate's main guarantee: nobody's advantage exceeds a bound."""
        return self.certificate.guarantee

    @property
    def low(self) -> float:
        """Lower limit of the largest advantage, shown by the best attack; 0 without attacks."""
        return max(0.0, *(attack.low for attack in self.attacks), 0.0)

    @property
    def high(self) -> float:
        """Upper limit of the largest advantage, proven by the certificate."""
        return self.certificate.advantage

    @property
    def failure_probability(self) -> float:
        """The chance that the largest advantage is outside of [low, high]: certificate's and attacks', added."""
        return min(
            1.0, self.certificate.failure_probability + sum(attack.failure_probability for attack in self.attacks)
        )

    @property
    def contradicted(self) -> bool:
        """Whether an attack exceeded the certificate, so that an assumption must be wrong."""
        return self.comparison.contradicted

    @property
    def met(self) -> bool:
        """Whether the ceiling, if there is one, is proven to be kept, and no attack contradicts the certificate."""
        if self.contradicted:
            return False
        if self.require_advantage is None:
            return True
        return self.copied is None and self.certificate.meets(advantage=self.require_advantage)

    def _card(self) -> tuple[str, Rows]:
        attacks = tuple(f"{attack.value_text}: {attack.method}" for attack in self.attacks)
        doubts = (self.certificate.caution,) if self.certificate.caution else ()
        return self.verdict, [("mind", doubts), ("attacks", attacks), *self.guarantee.facts]

    @property
    def verdict(self) -> str:
        """One sentence: how much is leaked, and whether the ceiling is met, broken or not proven.

        Where the certificate rests on an assumption that no table can confirm, the sentence begins with it. Where rows
        look copied, a sentence before it says so.
        """
        if self.copied is None or self.contradicted:
            return self._if_independent
        return after_copies(self.copied, "rows", self._if_independent, ceiling=self.require_advantage is not None)

    @property
    def _if_independent(self) -> str:
        """The verdict on rows that are not copied."""
        name, chance = self.certificate.output, chance_text(self.failure_probability)
        lower = sum(attack.failure_probability for attack in self.attacks)
        if self.attacks:
            upper = self.certificate.failure_probability
            chance += f" ({upper:.2g} for the upper limit, {lower:.2g} for the lower)"
        low, high = safe_text(self.low, toward="down"), safe_text(self.high, toward="up")
        condition = self.certificate.condition
        if self.contradicted:
            if self.certificate.method in ("noisy", "noise added"):
                condition = "the noise is fresh, and as strong as stated"
            wrong = f"that {condition}, or that rows are independent" if condition else "that rows are independent"
            return (
                f"Contradicted: an attack that sees only {name} reached {low} where the certificate allows {high}; an "
                f"assumption is wrong, most likely {wrong}."
            )
        leak = f"the largest advantage of anyone who sees only {name} lies between {low} and {high}, {chance}"
        ceiling = self.require_advantage
        if ceiling is None:
            return _sentence(condition, f"{leak}.")
        allowed = f"the ceiling is {float(ceiling)!r}"
        if self.certificate.meets(advantage=ceiling):
            return _sentence(condition, f"met: {leak}; {allowed}.")
        if self.low > ceiling:
            # Shown by an attack, which needs independent rows and nothing else that the certificate rests on.
            return (
                f"Broken: the largest advantage of anyone who sees only {name} is {low} or more, {chance_text(lower)}; "
                f"{allowed}."
            )
        if self.certificate.method == "continuous":
            return f"Not proven: {leak}; {allowed}, and no number of rows certifies a continuous output as it is."
        if isinstance(self.certificate, GuessCertificate):
            return f"Not proven: {leak}; {allowed}, and {self.certificate.rows} rows do not prove it: more rows may."
        rows = self.certificate.positives + self.certificate.negatives
        if self.certificate.by_kernel:
            return _sentence(
                condition, f"not proven: {leak}; {allowed}, and {rows} rows do not prove it: more rows may."
            )
        loss = "zero-one" if self.certificate.loss in ("zero-one", "joint") else "squared"
        failure = self.certificate.failure_probability
        needed = rows_needed(ceiling, failure_probability=failure, loss=loss, values=1)
        needed -= self.certificate.sampling == "pairs"  # an odd number may do
        more = f"it takes {needed} rows or more, even where nothing leaks" if needed > rows else "more rows may"
        return _sentence(condition, f"not proven: {leak}; {allowed}, and {rows} rows do not prove it: {more}.")


def after_copies(copied: tuple[int, int], what: str, verdict: str, *, ceiling: bool) -> str:
    """A verdict on a table in which rows repeat, behind a sentence that says so."""
    times, rows = copied
    return (
        f"Rows repeat: {rows} different {what} stand {times} times each in the table, which independent rows hardly do."
        f"{' No ceiling counts as proven.' * ceiling} If rows are independent all the same: "
        f"{verdict[:1].lower()}{verdict[1:]}"
    )


def _sentence(condition: str, claim: str) -> str:
    claim = f"if {condition}, {claim}" if condition else claim
    return claim[:1].upper() + claim[1:]


@renamed(delta="failure_probability", lipschitz="assume_max_slope")
def audit(
    secret: object,
    output: object,
    *,
    failure_probability: float = 0.05,
    attacks: Sequence[Attack] | Literal["all"] = "all",
    attack_rows: int = ATTACK_ROWS,
    require_advantage: float | None = None,
    noise: float | None = None,
    secret_range: tuple[float, float] | None = None,
    group: object = None,
    weights: object = None,
    seed: int = 0,
    **options: Any,
) -> Audit:
    """Certify an output, attack it, and compare both with a ceiling.

    Parameters
    ----------
    secret, output
        As in `certify`. A continuous output that cannot be certified is attacked all the same: its certificate then
        bounds nothing, and says so.
    failure_probability
        The certificate's. The intervals of "all" attacks fail with a tenth of it, which comes on top.
    attacks
        "all" runs those of `attempts`. Attacks of your own must be measured on rows of their own, and name the
        certificate's adversary and its `quantity("advantage")`.
    attack_rows
        How many rows "all" attacks use at most, drawn at random.
    require_advantage
        The ceiling for the advantage.
    secret_range
        For a secret number: the least and the largest that it can be at all, as `certify_number` takes them. Without
        it, a secret of more than two values is one of classes, as `certify_classes` takes it.
    group
        A column: rows with the same value belong together. One row of each group is drawn, as `one_per_group` does it,
        and what is certified is about a random row of a random group.
    noise, weights, seed, **options
        Those of `certify`.

    Returns
    -------
    The certificate, the attacks (an `Attempt` each where "all" were run) and the verdict.

    Raises
    ------
    NoTheoremError, InputError
        As in `certify`.
    """
    if attacks != "all" and not isinstance(attacks, list | tuple):
        remedy = "use 'all', or [] for none"
        raise InputError("attacks", attacks, requirement="must be 'all' or a list of Attacks", remedy=remedy)
    validate.whole("attack_rows", attack_rows, at_least=0, remedy="use 0 for no attacks")
    validate.whole("seed", seed, at_least=0, remedy="use 0")
    in_groups = 0
    if group is not None:
        secret, output, in_groups = drawn(secret, output, group, weights=weights)
        weights = None
    options |= {"failure_probability": failure_probability, "noise": noise, "weights": weights, "seed": seed}
    certificate: Certificate | GuessCertificate
    try:
        certificate = _certified(secret, output, secret_range, options)
    except ContinuousOutputError:
        certificate = certify(secret, output, **options | {"method": "continuous"})
    if group is not None:
        certificate = grouped(certificate, rows=in_groups)
    found: Sequence[Attack] = () if attacks == "all" else attacks
    if attacks == "all" and isinstance(certificate, GuessCertificate):
        secrets, rows = column("secret", secret), Sample.of_all(attack_rows, seed)
        columns = [secrets, *output_columns(output, rows=len(secrets))]
        rows.add(np.zeros(len(secrets)), columns, multiplicities(weights, len(secrets)))
        found = guess_attacked(certificate, rows, failure_probability=failure_probability, seed=seed)
    elif attacks == "all" and isinstance(certificate, Certificate):
        secrets, sample = column("secret", secret), Sample(attack_rows, seed)
        sample.add(secrets, output_columns(output, rows=len(secrets)), multiplicities(weights, len(secrets)))
        found = attacked(certificate, sample, failure_probability=failure_probability, noise=noise, seed=seed)
    copied = None
    if group is None:
        secrets = column("secret", secret)
        rows_of = [secrets, *output_columns(output, rows=len(secrets))]
        copied = Repeats().add(rows_of, multiplicities(weights, len(secrets))).copied
    return Audit(certificate=certificate, attacks=tuple(found), require_advantage=require_advantage, copied=copied)


def _certified(
    secret: object, output: object, secret_range: tuple[float, float] | None, options: dict[str, Any]
) -> Certificate | GuessCertificate:
    """By `certify`, or for a secret of several values or a number by what certifies these."""
    if secret_range is None:
        try:
            return certify(secret, output, **options)
        except SeveralValuesError:
            pass  # of several values
    kept = ("failure_probability", "weights", "name")
    for name, value in options.items():
        if name not in (*kept, "seed") and value is not None:
            raise InputError(
                name,
                value,
                requirement="must be left out for a secret of more than two values",
                remedy="leave it out, or make a column with two values",
            )
    given = {name: value for name, value in options.items() if name in kept}
    if secret_range is None:
        return certify_classes(secret, output, **given)
    return certify_number(secret, output, secret_range=secret_range, **given)


def guess_attacked(
    certificate: GuessCertificate, sample: Sample, *, failure_probability: float, seed: int
) -> tuple[GuessAttack, ...]:
    """Attacks on a sample of the table whose first column is the secret."""
    if not sample.rows:
        return ()
    secrets, *columns = sample.table()[1].values()
    return guess_attacks(
        secrets, columns, certificate=certificate, failure_probability=ATTACKS_SHARE * failure_probability, seed=seed
    )


def attacked(
    certificate: Certificate, sample: Sample, *, failure_probability: float, noise: float | None, seed: int
) -> tuple[Attempt, ...]:
    """Attacks on a sample of the table; none where a class has too few rows."""
    if sample.fewest < LEAST_ROWS:
        return ()
    secrets, columns = sample.table()
    return attempts(
        secrets,
        columns,
        certificate=certificate,
        noise=noise,
        failure_probability=ATTACKS_SHARE * failure_probability,
        seed=seed,
    )
