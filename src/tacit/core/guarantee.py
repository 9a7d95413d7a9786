"""The shape of every result: a guarantee, the attacks on it, and their comparison.

- `Guarantee`: what is proven about every adversary of a class, under stated assumptions.
- `Attack`: what one real adversary achieved, with a confidence interval.
- `Comparison`: a guarantee with attacks on it; attacks that say nothing about the guarantee are refused.

All are immutable, keyword-only, made of plain numbers and text, and pass through JSON unchanged. This module needs
only the standard library.
"""

from __future__ import annotations

import dataclasses
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from . import validate
from .deprecation import renamed
from .display import card
from .encoding import Encodable, check_derived, checked_entries, decoded, encoded, frozen, require_instance, set_field
from .errors import IncomparableError, InputError
from .evidence import Evidence
from .wording import chance_text, safe_text

REFERENCE = re.compile(r"theory\.([a-z]\w*)\.([a-z]\w*)")
"""A function of `tacit.theory`: its module, which is also the name of its page in docs/proofs/, and its name."""

Side = Literal["at_least", "at_most"]


@dataclass(frozen=True, kw_only=True)
class Adversary(Encodable):
    """The class of adversaries that a guarantee is about, or to which an attacker belongs.

    Use one of these:

    - `Adversary.ANY`: anyone, by any method, on the inputs that the quantity names.
    - `Adversary.UNBIASED`: unbiased estimators only. A decoder with a prior is biased and not in this class.
    - `Adversary.PRIOR`: anyone, but the error is averaged over a stated prior.
    - `Adversary.OUTPUT`: anyone who sees the named output and nothing else.

    `Adversary.PRIOR.scoped("uniform over 500 digits")` states the prior, and `Adversary.OUTPUT.scoped("the score
    column")` names the output. Without a scope, the quantity has to state it: comparisons then rely on the two
    quantities being equal.

    Attributes
    ----------
    kind
        "any", "unbiased", "prior" or "output".
    scope
        The prior or the output, in words; empty for the other two kinds.
    """

    kind: str
    scope: str = ""

    ANY: ClassVar[Adversary]
    UNBIASED: ClassVar[Adversary]
    PRIOR: ClassVar[Adversary]
    OUTPUT: ClassVar[Adversary]

    def __post_init__(self) -> None:
        validate.choice(
            "kind", self.kind, ("any", "unbiased", "prior", "output"), remedy="use Adversary.ANY or its siblings"
        )
        if not isinstance(self.scope, str) or (self.scope and self.kind in ("any", "unbiased")):
            raise InputError(
                f"the scope of an adversary of kind {self.kind!r}",
                self.scope,
                requirement="must be a string, and empty unless the kind is 'prior' or 'output'",
                remedy="scope Adversary.PRIOR with its prior or Adversary.OUTPUT with its output",
            )

    def scoped(self, scope: str) -> Adversary:
        """Return the same class with its prior stated, or its output named."""
        return Adversary(kind=self.kind, scope=validate.text("scope", scope, remedy="name the prior or the output"))

    def covers(self, other: Adversary) -> bool:
        """Whether a statement about this class also holds for `other`.

        ANY covers adversaries who are restricted (UNBIASED) or see less (OUTPUT). It does not cover PRIOR: an error
        averaged over a prior may be below the worst case that a bound on ANY is about.
        """
        return self == other or (self.kind == "any" and other.kind in ("unbiased", "output"))

    @property
    def in_words(self) -> str:
        """The class in words, for readers of a report."""
        return {
            "any": "anyone, by any method",
            "unbiased": "unbiased estimators only (right on average for every input, using no prior knowledge)",
            "prior": f"anyone, by any method, on average over {self.scope or 'the stated prior'}",
            "output": f"anyone who sees only {self.scope or 'the named output'}",
        }[self.kind]


Adversary.ANY = Adversary(kind="any")
Adversary.UNBIASED = Adversary(kind="unbiased")
Adversary.PRIOR = Adversary(kind="prior")
Adversary.OUTPUT = Adversary(kind="output")


@dataclass(frozen=True, kw_only=True)
class Assumption(Encodable):
    """An assumption of a guarantee, and who has to check it.

    Attributes
    ----------
    text
        What is assumed.
    checked_by
        "code" if Tacit refuses to continue when the assumption fails; "caller" if only you can know.
    """

    text: str
    checked_by: str

    def __post_init__(self) -> None:
        validate.text("the text of an assumption", self.text, remedy="say what is assumed")
        validate.choice(
            "checked_by", self.checked_by, ("code", "caller"), remedy="use 'caller' unless a violation raises"
        )


def proof_page(reference: str) -> str:
    """The page with the proof of a function of `tacit.theory`, relative to the root of the project."""
    return f"docs/proofs/{reference.split('.')[1]}.md"


def _theorem(given: object) -> tuple[str, ...]:
    """The theorem's words and names without repetitions; a single text counts as a list of one."""
    remedy = "name the functions of tacit.theory that prove the bound, e.g. 'theory.estimation.two_point_success'"
    entries = given if isinstance(given, list | tuple) else (given,)
    if not entries:
        raise InputError("theorem", given, requirement="must not be empty", remedy=remedy)
    for entry in entries:
        validate.text("theorem", entry, remedy=remedy)
        if entry.startswith("theory.") and not REFERENCE.fullmatch(entry):
            raise InputError(
                "theorem",
                entry,
                requirement="must be theory.MODULE.FUNCTION, or words that do not begin with 'theory.'",
                remedy=remedy,
            )
    return tuple(dict.fromkeys(entries))


@dataclass(frozen=True, kw_only=True)
class Guarantee(Encodable):
    """A proven statement: `quantity` is at least, or at most, `value` for every adversary of the class.

    Attributes
    ----------
    quantity
        What is bounded, with its unit.
    side
        "at_least" for a lower bound, "at_most" for an upper bound.
    value
        The bound.
    adversary
        The class of adversaries that the statement is about.
    theorem
        Words for readers, and every function of `tacit.theory` whose value entered the number; the one that gives the
        number comes first. An example is `("Neyman–Pearson", "theory.estimation.two_point_success")`. Entries that
        begin with `theory.` are functions, whose proofs `tacit proof` prints. A single text will do; where nothing is
        proven, it begins with "none:".
    assumptions
        What the statement assumes.
    failure_probability
        The chance that the statement is false because of random draws in its computation; 0 if nothing was sampled.
    detail
        What the number was computed from.
    evidence
        The theorem's exact inputs, for a certificate. JSON and copies by pickle do not hold it.
    """

    quantity: str
    side: Side
    value: float
    adversary: Adversary
    theorem: Sequence[str]
    assumptions: Sequence[Assumption]
    failure_probability: float = 0.0
    detail: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    evidence: Evidence | None = dataclasses.field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        validate.text("quantity", self.quantity, remedy="name what is bounded, with its unit")
        validate.choice("side", self.side, ("at_least", "at_most"), remedy="say which way the bound points")
        set_field(self, "value", validate.number("value", self.value, finite=False, remedy="use inf for no bound"))
        require_instance("adversary", self.adversary, Adversary)
        set_field(self, "theorem", _theorem(self.theorem))
        if not isinstance(self.assumptions, list | tuple):
            require_instance("assumptions", self.assumptions, tuple)
        for assumption in self.assumptions:
            require_instance("each of assumptions", assumption, Assumption)
        set_field(self, "assumptions", tuple(self.assumptions))
        failure = validate.number(
            "failure_probability", self.failure_probability, at_least=0, below=1, remedy="use 0 if nothing was sampled"
        )
        set_field(self, "failure_probability", failure)
        require_instance("detail", self.detail, Mapping)
        set_field(self, "detail", frozen("detail", self.detail))
        if self.evidence is not None:
            require_instance("evidence", self.evidence, Evidence)

    @classmethod
    def _field_from_dict(cls, name: str, value: object) -> Any:
        if name == "adversary":
            return Adversary.from_dict(value)
        if name == "assumptions" and isinstance(value, list):
            return tuple(Assumption.from_dict(item) for item in value)
        return decoded(value)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; the derived entry `proofs` has the page of each function in `theorem`."""
        entries = {**super().to_dict(), "proofs": self._proofs()}
        del entries["evidence"]
        return entries

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Read what `to_dict` wrote, in this schema or the previous one."""
        names = [field.name for field in dataclasses.fields(cls) if field.name != "evidence"]
        entries = checked_entries(cls.__name__, data, lambda schema: [*names, *["proofs"] * (schema > 1)])
        made = cls(**{name: cls._field_from_dict(name, entries[name]) for name in names})
        if "proofs" in entries:
            check_derived(cls.__name__, entries, {"proofs": made._proofs()})
        return made

    def _proofs(self) -> dict[str, str]:
        return {name: proof_page(name) for name in self.references}

    @property
    def references(self) -> tuple[str, ...]:
        """The functions of `tacit.theory` whose values entered the number, as `theory.module.function`."""
        return tuple(entry for entry in self.theorem if REFERENCE.fullmatch(entry))

    @property
    def theorem_text(self) -> str:
        """The theorem in one line: its words, then the functions, the one that gives the number first."""
        words = [entry for entry in self.theorem if entry not in self.references]
        return ": ".join(filter(None, ("; ".join(words), ", ".join(self.references))))

    @property
    def proof_text(self) -> str:
        """The command that prints the proofs; empty if no function is named."""
        names = [name.rpartition(".")[2] for name in self.references]
        return " ".join(["tacit proof", *names]) if names else ""

    @property
    def bound_text(self) -> str:
        """The side and the bound to three digits, rounded so that it still holds; an infinity is put in words."""
        if not math.isinf(self.value):
            toward: Literal["down", "up"] = "down" if self.side == "at_least" else "up"
            return f"{self.side.replace('_', ' ')} {safe_text(self.value, toward=toward)}"
        if (self.side == "at_least") == (self.value > 0):
            return "unlimited: no adversary of this class exists"
        return "not bounded: the guarantee is vacuous here"

    @property
    def chance_text(self) -> str:
        """The chance that the computation is wrong, in words; empty if it sampled nothing."""
        return chance_text(self.failure_probability) if self.failure_probability else ""

    def assumed(self, *, checked_by: str) -> tuple[str, ...]:
        """Return the assumptions that the caller, or the code, has to check."""
        return tuple(assumption.text for assumption in self.assumptions if assumption.checked_by == checked_by)

    def _repr_html_(self) -> str:
        return card(self.quantity, self.facts)

    @property
    def facts(self) -> list[tuple[str, str | tuple[str, ...]]]:
        """The claim, the adversary, the assumptions and the theorem, as rows of name and text."""
        return [
            ("proven", ", ".join(filter(None, (self.bound_text, self.chance_text)))),
            ("against", self.adversary.in_words),
            ("only you can check that", self.assumed(checked_by="caller")),
            ("theorem", self.theorem_text),
            ("proof", self.proof_text),
        ]

    def __call__(self) -> Self:
        """Return the guarantee: results that had a method `guarantee()` have a property now. It will be removed."""
        warnings.warn("guarantee() will be removed; use guarantee", DeprecationWarning, stacklevel=2)
        return self

    def __str__(self) -> str:
        claim = f"{self.quantity} is {self.bound_text} for {self.adversary.in_words}"
        proof = f" ({self.proof_text})" if self.references else ""
        return ", ".join(filter(None, (claim, self.chance_text))) + proof


@renamed(confidence=("failure_probability", lambda value: 1 - value))
@dataclass(frozen=True, kw_only=True)
class Attack(Encodable):
    """What a real adversary achieved.

    Attributes
    ----------
    quantity
        What was measured, with its unit, in the words of the guarantee it is compared with.
    value
        What the adversary achieved.
    low, high
        The ends of an interval around it.
    failure_probability
        The chance that the interval misses the true value; 0 if the value is exact.
    adversary
        Who attacked.
    method
        How the attack works.
    """

    quantity: str
    value: float
    low: float
    high: float
    failure_probability: float
    adversary: Adversary
    method: str

    def __post_init__(self) -> None:
        validate.text("quantity", self.quantity, remedy="name what was measured, with its unit")
        for name in ("value", "low", "high"):
            set_field(self, name, validate.number(name, getattr(self, name), finite=False, remedy="measure it again"))
        if not self.low <= self.value <= self.high:
            raise InputError(
                "value",
                self.value,
                requirement=f"must lie between low = {self.low:g} and high = {self.high:g}",
                remedy="pass the interval that belongs to the value",
            )
        failure = validate.number(
            "failure_probability",
            self.failure_probability,
            at_least=0,
            below=1,
            remedy="use 0.01, or 0 for an exact value",
        )
        set_field(self, "failure_probability", failure)
        require_instance("adversary", self.adversary, Adversary)
        validate.text("method", self.method, remedy="say how the attack works")

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Read what `to_dict` wrote; earlier files hold the confidence instead of the failure probability."""
        names = [field.name for field in dataclasses.fields(cls)]
        old = ["confidence" if name == "failure_probability" else name for name in names]
        earlier = isinstance(data, dict) and "confidence" in data
        entries = checked_entries(cls.__name__, data, lambda _: old if earlier else names)
        if "confidence" in entries:
            confidence = validate.number(
                "confidence", decoded(entries["confidence"]), above=0, at_most=1, remedy="write the file again"
            )
            entries = {**entries, "failure_probability": 1 - confidence}
        return cls(**{name: cls._field_from_dict(name, entries[name]) for name in names})

    @classmethod
    def _field_from_dict(cls, name: str, value: object) -> Any:
        return Adversary.from_dict(value) if name == "adversary" else decoded(value)

    @property
    def value_text(self) -> str:
        """The value and its interval; the ends of the interval are rounded outward."""
        interval = f"{safe_text(self.low, toward='down')} to {safe_text(self.high, toward='up')}"
        if self.low == self.high:
            return f"{safe_text(self.value, toward='nearest')} (exact)"
        chance = f", {chance_text(self.failure_probability)}" if self.failure_probability else ""
        return f"{safe_text(self.value, toward='nearest')} ({interval}{chance})"

    def _repr_html_(self) -> str:
        return card(self.quantity, [("reached", self.value_text), ("by", self.method)])

    def __str__(self) -> str:
        return f"{self.method}: {self.quantity} of {self.value_text}"


@dataclass(frozen=True, kw_only=True, init=False)
class Comparison(Encodable):
    """A guarantee and the attacks on it, if there are any.

    Parameters
    ----------
    guarantee
        The guarantee.
    attacks
        The attacks on it.
    attack
        The old name of `attacks`, for a single one.

    Raises
    ------
    IncomparableError
        If an attack says nothing about the guarantee, because it is about another quantity or by an adversary outside
        the guarantee's class. For example, a constant guess has no variance and "beats" any bound on unbiased
        estimators.
    """

    guarantee: Guarantee
    attacks: Sequence[Attack] = ()

    def __init__(self, *, guarantee: Guarantee, attacks: Sequence[Attack] = (), attack: Attack | None = None) -> None:
        if attack is not None:
            _warn_of_one("Comparison(attack=…)", "give attacks=(…,)")
            if attacks:
                raise InputError("attack", attack, requirement="must not stand beside attacks", remedy="give attacks")
            attacks = (attack,)
        require_instance("guarantee", guarantee, Guarantee)
        if not isinstance(attacks, list | tuple):
            require_instance("attacks", attacks, tuple)
        for one in attacks:
            require_instance("each of attacks", one, Attack)
            _check_comparable(guarantee, one)
        set_field(self, "guarantee", guarantee)
        set_field(self, "attacks", tuple(_plain(one) for one in attacks))

    @property
    def attack(self) -> Attack | None:
        """The old name of `nearest`; it will be removed."""
        _warn_of_one("Comparison.attack", "use nearest, or attacks")
        return self.nearest

    @property
    def nearest(self) -> Attack | None:
        """The attack that came nearest to the bound, or went farthest beyond it; None if there is none."""
        return min(self.attacks, key=self.gap_of, default=None)

    @property
    def contradicted(self) -> bool:
        """Whether the whole confidence interval of some attack is beyond the bound."""
        return bool(self.contradicting)

    @property
    def contradicting(self) -> tuple[Attack, ...]:
        """The attacks that achieved what the guarantee rules out."""
        if self.guarantee.side == "at_least":
            return tuple(attack for attack in self.attacks if attack.high < self.guarantee.value)
        return tuple(attack for attack in self.attacks if attack.low > self.guarantee.value)

    @property
    def gap(self) -> float | None:
        """How far the nearest attack stayed from the bound, in the quantity's unit; negative if beyond it."""
        return None if self.nearest is None else self.gap_of(self.nearest)

    def gap_of(self, attack: Attack) -> float:
        """Return how far the attack stayed from the bound."""
        bound, achieved = self.guarantee.value, attack.value
        if bound == achieved:
            return 0.0
        return achieved - bound if self.guarantee.side == "at_least" else bound - achieved

    @property
    def false_alarm_probability(self) -> float:
        """An upper bound on the chance that `contradicted` is true although theorem and assumptions hold."""
        unsure = math.fsum(attack.failure_probability for attack in self.attacks)
        return min(1.0, self.guarantee.failure_probability + unsure)

    def _repr_html_(self) -> str:
        attacked: list[tuple[str, str | tuple[str, ...]]] = [("attack", "none was run")]
        if self.attacks:
            texts = tuple(f"{attack.value_text}: {attack.method}" for attack in self.attacks)
            attacked = [
                ("attack", texts[0]) if len(texts) == 1 else ("attacks", texts),
                ("contradicted", "yes: an assumption does not hold, or this is a bug" if self.contradicted else "no"),
            ]
        return card(self.guarantee.quantity, [*attacked, *self.guarantee.facts])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types; `contradicted` and `gap` are derived entries."""
        return {**super().to_dict(), **self._derived()}

    def _derived(self) -> dict[str, Any]:
        return {"contradicted": self.contradicted, "gap": encoded(self.gap)}

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Read what `to_dict` wrote, in this schema or the previous one, which had at most one attack."""
        entries = checked_entries(
            cls.__name__,
            data,
            lambda schema: ["guarantee", "attack" if schema == 1 else "attacks", "contradicted", "gap"],
        )
        attacks = entries["attacks"] if "attacks" in entries else [entries["attack"]] * (entries["attack"] is not None)
        require_instance("attacks in the JSON of a Comparison", attacks, list)
        comparison = cls(
            guarantee=Guarantee.from_dict(entries["guarantee"]),
            attacks=tuple(Attack.from_dict(attack) for attack in attacks),
        )
        check_derived(cls.__name__, entries, comparison._derived())
        return comparison


def _plain(attack: Attack) -> Attack:
    """The attack without what a subclass adds, so that a comparison goes through JSON unchanged."""
    if type(attack) is Attack:
        return attack
    return Attack(**{field.name: getattr(attack, field.name) for field in dataclasses.fields(Attack)})


def _check_comparable(guarantee: Guarantee, attack: Attack) -> None:
    if guarantee.quantity != attack.quantity:
        raise IncomparableError(
            f"the guarantee is about {guarantee.quantity!r}, the attack about {attack.quantity!r}; "
            "a comparison needs one quantity; measure the attack in the guarantee's quantity"
        )
    if not guarantee.adversary.covers(attack.adversary):
        raise IncomparableError(
            f"the guarantee is about {guarantee.adversary.in_words}, the attack was made by "
            f"{attack.adversary.in_words}; a comparison needs an attack inside the guarantee's class; "
            "use a guarantee that covers this adversary"
        )


def _warn_of_one(old: str, new: str) -> None:
    warnings.warn(
        f"{old} will be removed, since a guarantee may face several attacks; {new}", DeprecationWarning, stacklevel=3
    )
