"""The ledger: a durable account of spent privacy, in an SQLite file or a PostgreSQL database.

A `Ledger` has a budget (ε, δ). Each release is an `Entry` with its cost. A `Note` is added to an entry at no cost, e.g.
one answer of a mechanism that was paid for up front.

Spend first, release afterwards. An entry is on the disk before `spend` returns; if the process dies in between, budget
is lost, never privacy. Entries and notes are stored in the clear: put nothing private into them.

**What holds.** Amounts are (ε, δ) for adding or removing one record of the data, unless an entry says otherwise in its
detail, under `neighbours`. Costs of entries about the same neighbours add up; others add up to no promise, and the
guarantee says so. As a *filter* this is valid: all releases together are (ε, δ)-differentially private with the
budget's ε and δ, even if each release and its cost were chosen after seeing earlier answers (Rogers, Roth, Ullman and
Vadhan 2016, arXiv:1605.08294), and even if the answers of several mechanisms were asked for in turn (Haney et al. 2023,
arXiv:2309.05901). As an *odometer*, a claim about what was spent rather than about the budget, the sum is valid if the
costs and the moment to stop did not depend on answers, or if every δ is 0. docs/ledger.md proves this.

**Amounts** are decimal numbers with up to 60 places: costs are rounded up to them, budgets down, and sums are exact.
A float counts as the decimal number that it prints as, so that ten times 0.1 is 1; bounds of `tacit.theory` are
rounded up by more than this changes. `Fraction(x)` counts as the very value of a float `x`.
"""

from .amounts import PLACES, Amount, Number
from .database import TIMEOUT, exists, named_place, require_ledger
from .entries import SCHEMA, Entry, Note
from .ledger import Ledger
from .page import statement

__all__ = [
    "PLACES",
    "SCHEMA",
    "TIMEOUT",
    "Amount",
    "Entry",
    "Ledger",
    "Note",
    "Number",
    "exists",
    "named_place",
    "require_ledger",
    "statement",
]
