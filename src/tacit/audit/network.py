"""Theorem 1 of the paper: a certificate from the loss of a two-layer network that was trained on the table."""

from __future__ import annotations

from ..core import validate
from ..core.deprecation import renamed
from ..core.errors import InputError
from ..core.guarantee import Assumption
from ..core.rounding import up
from ..theory import certificates
from .certificate import Certificate
from .certifying import fair
from .limits import from_squared


@renamed(delta="failure_probability")
def certify_network(
    empirical_loss: float,
    *,
    positives: int,
    negatives: int,
    neurons: int,
    barron: float,
    diameter: float,
    failure_probability: float,
    name: str = "the output",
) -> Certificate:
    """Certify by Theorem 1 of the paper, as printed, from the squared loss of a two-layer network.

    It assumes that training reached the global minimum, which nobody can check; `certify` needs no such assumption.

    Parameters
    ----------
    empirical_loss
        The network's mean squared error on the table, the secret coded ±1.
    positives, negatives
        Rows of each class, about as many of both.
    neurons
        Of the network's hidden layer.
    barron
        The Barron constant of the posterior.
    diameter
        Of a compact set around 0 that holds all outputs.
    failure_probability
        The chance that the rows were so unusual that the certificate is false.
    name
        The output in words, for reports.

    Raises
    ------
    InputError
        Where the classes are no fair coins, or a value is out of range.

    References
    ----------
    Diaz, Kairouz, Liao and Sankar 2019, *Theoretical guarantees for model auditing with finite adversaries*, Theorem 1.
    """
    for label, rows in (("positives", positives), ("negatives", negatives)):
        validate.whole(label, rows, at_least=1, remedy="count the rows of the class")
    if not fair(positives, negatives):
        raise InputError(
            "negatives",
            negatives,
            requirement=f"must be about as many as positives, {positives}, where every secret was a fair coin",
            remedy="use certify, which takes classes of any sizes",
        )
    bound = certificates.printed_network_loss(
        empirical_loss,
        count=positives + negatives,
        neurons=neurons,
        barron=barron,
        diameter=diameter,
        failure_probability=failure_probability,
    )
    return Certificate(
        **from_squared(min(1.0, up(1 - bound)))._asdict(),
        plug_in=min(1.0, up(1 - empirical_loss)),
        failure_probability=failure_probability,
        loss="squared",
        method="network",
        form="printed",
        sampling="pairs",
        output=name,
        positive=1,
        negative=-1,
        positives=positives,
        negatives=negatives,
        theorem=("Theorem 1 of Diaz, Kairouz, Liao and Sankar 2019", "theory.certificates.printed_network_loss"),
        assumptions=tuple(
            Assumption(text=text, checked_by="caller")
            for text in (
                f"the network reached the global minimum over all networks of {neurons} neurons on this table",
                f"the posterior extends smoothly with Barron constant {float(barron)!r}",
                f"both classes have densities on one compact set of diameter {float(diameter)!r} around 0",
                "rows are independent pairs, and every secret was a fair coin",
            )
        ),
    )
