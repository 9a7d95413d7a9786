"""Theorem 1 of the paper: a certificate from the loss of a two-layer network, trained on the table."""

from __future__ import annotations

from ..core import validate
from ..core.errors import InputError
from ..core.guarantee import Assumption
from ..core.rounding import up
from ..theory import certificates
from .certificate import Certificate
from .certifying import fair
from .limits import from_squared


def certify_network(
    empirical_loss: float,
    *,
    positives: int,
    negatives: int,
    neurons: int,
    barron: float,
    diameter: float,
    delta: float,
    name: str = "the output",
) -> Certificate:
    """Theorem 1 of the paper as printed: from the squared loss of a two-layer network on the table.

    Only as good as its assumption that training reached the global minimum; `certify` needs no such thing.
    """
    for label, rows in (("positives", positives), ("negatives", negatives)):
        validate.whole(label, rows, at_least=1, remedy="count the rows of the class")
    if not fair(positives, negatives):
        raise InputError(
            "negatives",
            negatives,
            requirement=f"must be about as many as positives, {positives}, where every secret was a fair coin",
            remedy="use certify, which needs no shares of the classes",
        )
    bound = certificates.printed_network_loss(
        empirical_loss,
        count=positives + negatives,
        neurons=neurons,
        barron=barron,
        diameter=diameter,
        failure_probability=delta,
    )
    return Certificate(
        **from_squared(min(1.0, up(1 - bound)))._asdict(),
        plug_in=min(1.0, up(1 - empirical_loss)),
        delta=delta,
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
