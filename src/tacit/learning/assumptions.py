"""Assumptions of a fit that only the caller can check, beyond those of the mechanism."""

from ..core.guarantee import Assumption

LABELS_ALONE = Assumption(
    text="features of all records are treated as public: labels alone are protected",
    checked_by="caller",
)
CLASSES_PUBLIC = Assumption(
    text="the classes that were named, directly or by a model that proposes labels, are public knowledge, whatever "
    "the private labels are",
    checked_by="caller",
)
EACH_ALONE = Assumption(
    text="the transformer of features turns each record into numbers on its own, by a rule that public records alone "
    "decide",
    checked_by="caller",
)
ENCODER_PUBLIC = Assumption(
    text="the encoder of texts or images was made without the private records, and what it makes of one record does "
    "not depend on what it was asked about before",
    checked_by="caller",
)
PROPOSER_PUBLIC = Assumption(
    text="the model that may propose the first labels was made without the private records",
    checked_by="caller",
)


def comparing(compared: str) -> Assumption:
    """The assumption that such neighbours are what matters. It comes before all others."""
    return Assumption(text=f"it is enough to compare data that differ by {compared}", checked_by="caller")


def neighbours(*, labels_only: bool, ids: bool, label_column: str | None = None, ids_column: str | None = None) -> str:
    """In what the two data sets differ that the guarantee compares; the report and the ledger's entry say the same.

    Columns are named if they are known. The cost of one label column says nothing about another, which the same run may
    publish, and the people of one id column are not those of another.
    """
    if labels_only:
        found = "all labels of one person changed" if ids else "one label changed"
    else:
        found = "all records of one person added or removed" if ids else "one record added or removed"
    named = [f"label column {label_column!r}"] * (labels_only and label_column is not None)
    named += [f"people by column {ids_column!r}"] * (ids and ids_column is not None)
    return f"{found} ({', '.join(named)})" if named else found
