"""Audits of vectors: a code of them is certified, and the whole vectors are attacked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..core import validate
from ..core.display import Carded, Rows
from ..core.errors import InputError
from ..core.wording import chance_text, safe_text
from .attacks import LEAST_ROWS, attempts
from .attempt import Attempt
from .certificate import Certificate
from .certifying import certify_tally, ordered, uncertified
from .codes import Code, Means, fixed, own_rows, parsed, vectors_of
from .columns import column, two_labels
from .groups import copied
from .sample import Sample
from .tally import Tally
from .terms import LONGEST_STRING, at_rows, text_prints
from .verdict import ATTACK_ROWS, ATTACKS_SHARE, Audit, after_copies

Vectors = NDArray[np.float64] | list[NDArray[Any]]
"""A matrix of numbers; or columns, some of which hold texts."""
ON_CODE = ("histogram",)
"""The attacks on a code: by its cells alone, no other can do better."""
_FEW = 0.01  # of the rows


@dataclass(frozen=True, kw_only=True, repr=False)
class VectorAudit(Carded):
    """What is certified of a code of vectors, and what attacks on the whole vectors reached.

    Attributes
    ----------
    audit
        The certificate about whoever sees the code, attacks on the code, and the ceiling if one is required.
    attacks
        Attacks on the whole vectors, the best one first; none where only the code is released.
    code
        The code, which was fixed on rows of its own.
    own_rows
        How many.
    release_code
        Whether the code is what is released. If not, whole vectors are, and the certificate does not cover them.
    different
        How many vectors are different to the last bit, those of the rows that fixed the code included.
    vectors
        The vectors, in words.
    copied
        (r, f) where f different vectors occur r times each, which independent rows hardly do; None otherwise.
    """

    audit: Audit
    attacks: tuple[Attempt, ...]
    code: Code
    own_rows: int
    release_code: bool
    different: int
    vectors: str
    copied: tuple[int, int] | None = None

    @property
    def certificate(self) -> Certificate:
        """About whoever sees the code."""
        return cast("Certificate", self.audit.certificate)

    @property
    def reached(self) -> float:
        """What the best attack on the vectors reached at least; 0 without attacks."""
        return max([0.0, *(attack.low for attack in self.attacks)])

    @property
    def beaten(self) -> bool:
        """Whether an attack on the vectors reached more than anyone can who sees the code."""
        return self.reached > self.certificate.advantage

    @property
    def met(self) -> bool:
        """Whether the ceiling, if there is one, is proven to be kept by what is released; never by copied rows."""
        proven = self.release_code and self.copied is None
        return self.audit.met and (proven or self.audit.require_advantage is None)

    @property
    def verdict(self) -> str:
        """What is proven, and of whom: a sentence or two, the worst first."""
        if self.copied is None:
            return self._if_independent
        what = "vectors" if self.code.terms is None else "texts"
        return after_copies(self.copied, what, self._if_independent, ceiling=self.audit.require_advantage is not None)

    @property
    def _if_independent(self) -> str:
        """The verdict on rows that are not copied."""
        if self.release_code or self.audit.contradicted:
            return self.audit.verdict
        ceiling = self.audit.require_advantage
        high = safe_text(self.certificate.advantage, toward="up")
        chance = chance_text(sum(attack.failure_probability for attack in self.attacks))
        reached = f"is {safe_text(self.reached, toward='down')} or more, {chance}, as an attack shows"
        proven = (
            f"the advantage of anyone who sees only {self.certificate.output} is at most {high}, "
            f"{chance_text(self.certificate.failure_probability)}"
        )
        more = f"Whoever {'sees' if self.code.terms is None else 'reads'} {self.vectors} may learn more"
        limit = "" if ceiling is None else f"; the ceiling is {float(ceiling)!r}"
        of_vectors = f"the largest advantage of anyone who sees {self.vectors} {reached}"
        if ceiling is not None and self.reached > ceiling:
            left = "the code leaves out what shows this: " if self.beaten else ""
            said = f"{left}{proven}"
            return f"Broken: {of_vectors}{limit}. {said[:1].upper()}{said[1:]}."
        if self.beaten:
            return (
                f"Beaten: {of_vectors}, where nobody who sees only the code exceeds {high}: the code leaves out what "
                f"the attack uses, and nothing is certified of {self.vectors}{limit}."
            )
        attacked = f": {of_vectors}" if self.attacks else ", and no attack was run"
        if ceiling is not None:
            others = ", or vectors with noise," * (self.code.terms is None)
            return f"Not proven: {proven}. {more}{attacked}{limit}, and only the code{others} can be proven to keep it."
        return f"{proven[:1].upper()}{proven[1:]}. {more}{attacked}."

    @property
    def caution(self) -> str:
        """A doubt that repeated vectors raise; empty if there is none."""
        rows = self.own_rows + self.certificate.positives + self.certificate.negatives
        copies = rows - self.different
        if copies <= _FEW * rows or self.different <= _FEW * rows:  # nearly none, or vectors of a few kinds
            return ""
        return (
            f"{copies} of {rows} rows repeat the {'vector' if self.code.terms is None else 'text'} of an earlier row "
            f"to the last {'bit' if self.code.terms is None else 'letter'}. If these are copies of records, rows are "
            "not independent, and the certificate is false: leave copies out."
        )

    def _card(self) -> tuple[str, Rows]:
        attacks = tuple(f"{attack.value_text}: {attack.method}" for attack in self.attacks)
        doubts = tuple(one for one in (self.caution, self.left_out, self.of_codebook) if one)
        on = "attacks on the vectors" if self.code.terms is None else "attacks on the texts"
        return self.verdict, [("mind", doubts), (on, attacks), *self.certificate.guarantee.facts]

    @property
    def of_codebook(self) -> str:
        """What a released code may tell of the rows that fixed it; empty where no code is released."""
        if not self.release_code:
            return ""
        held = "its thresholds lie between numbers of theirs"
        if isinstance(self.code, Means):
            held = "a point of k-means can be one of these records"
        held += ", and its terms can be names in their texts" * (self.code.terms is not None)
        return (
            "The certificate also holds where the adversary knows the codebook, but it is not about the "
            f"{self.own_rows} rows that fixed it, and the codebook may tell much about them: {held}. Publish it only "
            "if these rows may be public."
        )

    @property
    def left_out(self) -> str:
        """What code and attacks do not look at in texts; empty where there are none."""
        terms = self.code.terms
        if terms is None:
            return ""
        seen = "Of a text, the code sees" if self.release_code else "Of a text, the code and the attacks see"
        said = (
            f"{seen} no more than its length and how often {terms.counted} words and strings of up to "
            f"{LONGEST_STRING} letters occur, chosen on the rows that fixed the code."
        )
        if self.release_code:
            return said
        return f"{said} Whoever reads the text may learn more than both show: what it means, or a rare name."


def audit_vectors(
    secret: object,
    output: object,
    *,
    code: str = "auto",
    release_code: bool = False,
    failure_probability: float = 0.05,
    attack_rows: int = ATTACK_ROWS,
    require_advantage: float | None = None,
    positive: object = None,
    name: str | None = None,
    seed: int = 0,
) -> VectorAudit:
    """Certify a code of vectors, such as softmax outputs or embeddings, or of texts, and attack the whole vectors.

    No table certifies a vector of many numbers as it is. So a quarter of the rows, 50 000 at most, fixes a code: a
    function from vectors to a few cells. The other rows certify what nobody who sees the code can learn. Whoever sees
    the whole vector may learn more, unless the code is all that is released.

    Parameters
    ----------
    secret
        A column with two values.
    output
        A matrix of numbers, a row for each record. Or a column of texts, such as a model's replies; or columns of texts
        and of numbers that are seen together, in a mapping or a data frame. Texts become numbers by their lengths and
        by how often some words and strings of letters occur in them, which the rows that fix the code choose.
    code
        "kmeans" (the nearest of a few points), "tree" (the leaf of a decision tree that tells the secret) or "attack"
        (bins of the strongest attack's score), and the number of cells if it follows: "kmeans:64". "auto" takes what
        shows the greatest advantage on the rows that fix the code.
    release_code
        Whether the code is what is released, instead of the vectors: "kmeans" or "tree". The codebook, by which others
        could code as well, may tell much about the rows that fixed it.
    failure_probability
        The chance that the rows were so unusual that the certificate is false. The intervals of attacks fail with a
        tenth of it, which comes on top.
    attack_rows
        How many rows are attacked at most, drawn at random; 0 for no attacks.
    require_advantage
        The ceiling for the advantage.
    positive
        The secret that is called positive; by default the one that sorts last.
    name
        The vectors in words, for reports; by default "the vector" or "the text".
    seed
        Of the rows that fix the code, the code, samples and attacks. Fix it beforehand.

    Raises
    ------
    NoTheoremError, InputError
        Where the table or an option cannot be used.
    """
    check_code(code, release_code=release_code)
    validate.whole("attack_rows", attack_rows, at_least=0, remedy="use 0 for no attacks")
    validate.whole("seed", seed, at_least=0, remedy="use 0")
    secrets, outputs = column("secret", secret), vectors_of("output", output)
    texts = isinstance(outputs, list)
    default = "the vector" if not texts else "the text" if len(outputs) == 1 else "the texts and numbers"
    vectors = validate.text("name", default if name is None else name, remedy="name what the adversary sees")
    count = len(outputs[0]) if isinstance(outputs, list) else len(outputs)
    if len(secrets) != count:
        raise InputError(
            "output",
            f"{count} rows",
            requirement=f"must have as many rows as secret, {len(secrets)}",
            remedy="pass columns of one table",
        )
    own = own_rows(count, seed)
    book = code_for(secrets[own], at_rows(outputs, own), code=code, seed=seed)
    rest = np.ones(count, dtype=bool)
    rest[own] = False
    seen = Seen(book, attack_rows=attack_rows, seed=seed)
    tally = Tally().add(*seen.add(secrets[rest], at_rows(outputs, rest)))
    certificate = certify_tally(
        tally,
        failure_probability=failure_probability,
        positive=positive,
        name=coded_name(book, vectors),
        seed=seed,
    )
    on_code = seen.on_code(certificate, failure_probability=failure_probability, seed=seed)
    times = np.unique(fingerprints(outputs), return_counts=True)[1]
    return VectorAudit(
        audit=Audit(certificate=certificate, attacks=on_code, require_advantage=require_advantage),
        attacks=()
        if release_code
        else seen.on_vectors(tally, vectors, certificate, failure_probability=failure_probability, seed=seed),
        code=book,
        own_rows=len(own),
        release_code=release_code,
        different=len(times),
        vectors=vectors,
        copied=copied(times),
    )


def check_code(code: object, *, release_code: object) -> None:
    """Refuse a code that does not exist, and the release of one that was not named or that is an attack."""
    kind, _ = parsed(code)
    if release_code and kind not in ("kmeans", "tree"):
        raise InputError(
            "code",
            code,
            requirement="must be 'kmeans' or 'tree' where the code is what is released",
            remedy="name the code that you release",
        )


def code_for(secrets: NDArray[Any], vectors: Vectors, *, code: str, seed: int) -> Code:
    """The code by these rows, which must hold both secrets and are not certified."""
    labels = two_labels([], np.unique(secrets).tolist())
    return fixed(secrets == labels[-1], vectors, code=code, seed=seed)


def fingerprints(rows: Vectors) -> NDArray[np.uint64]:
    """Numbers that are equal for equal rows, and for others almost never."""
    if isinstance(rows, list):
        parts = [text_prints(one) if one.dtype.kind == "O" else fingerprints(one[:, None]) for one in rows]
        odd = np.random.default_rng(1).integers(0, 2**63, len(parts), dtype=np.uint64) * 2 + 1
        return np.asarray((np.stack(parts, axis=1) * odd).sum(axis=1, dtype=np.uint64))
    factors = np.random.default_rng(0).integers(0, 2**63, rows.shape[1], dtype=np.uint64) * 2 + 1
    bits = np.ascontiguousarray(rows + 0.0).view(np.uint64)  # 0.0 and -0.0 are equal
    prints: NDArray[np.uint64] = np.einsum("ij,j->i", bits ^ (bits >> np.uint64(32)), factors)
    return prints


def coded_name(code: Code, vectors: str) -> str:
    """What whoever sees the code sees, in words."""
    return f"the code of {vectors} ({code.in_words})"


class Seen:
    """What is kept of rows that pass: random samples of codes and of vectors, to attack them."""

    def __init__(self, code: Code, *, attack_rows: int, seed: int) -> None:
        self.code = code
        self.codes, self.vectors = Sample(attack_rows, seed), Sample(attack_rows, seed)

    def add(self, secrets: NDArray[Any], vectors: Vectors) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Keep some of the rows, and return secrets and codes to count."""
        numbers = self.code.numbers("output", vectors)
        cells = self.code.cells_of(numbers)
        self.codes.add(secrets, [cells], None)
        self.vectors.add(secrets, [numbers], None)
        return secrets, cells

    def on_code(self, certificate: Certificate, **options: Any) -> tuple[Attempt, ...]:
        """Attacks on the code."""
        return _attacked(self.codes, certificate, learners=ON_CODE, **options)

    def on_vectors(self, tally: Tally, name: str, certificate: Certificate, **options: Any) -> tuple[Attempt, ...]:
        """Attacks on the vectors, which nothing is certified of."""
        nothing = uncertified(
            tally,
            ordered([tally.negative, tally.positive], certificate.positive),
            failure_probability=0.0,
            output=name,
            method="continuous",
            reason="whole vectors without noise are attacked, not certified",
        )
        return _attacked(self.vectors, nothing, learners=None, **options)


def _attacked(
    sample: Sample,
    certificate: Certificate,
    *,
    learners: tuple[str, ...] | None,
    failure_probability: float,
    seed: int,
) -> tuple[Attempt, ...]:
    if sample.fewest < LEAST_ROWS:
        return ()
    secrets, columns = sample.table()
    failure = ATTACKS_SHARE * failure_probability / 2  # the other half is for the other sample
    return attempts(
        secrets, columns[0], certificate=certificate, learners=learners, failure_probability=failure, seed=seed
    )
