"""Certificates from tables: what nobody who sees an output can learn about a secret."""

from .attacks import Attempt, Rates, attempts
from .certificate import (
    READINGS,
    SCOPE,
    Certificate,
    certify,
    certify_network,
    certify_slices,
    certify_tallies,
    certify_tally,
)
from .curve import ImpliedByDP, PrivacyCurve, privacy_curve
from .planning import rows_needed
from .tally import Tally
from .verdict import Audit, audit

__all__ = [
    "READINGS",
    "SCOPE",
    "Attempt",
    "Audit",
    "Certificate",
    "ImpliedByDP",
    "PrivacyCurve",
    "Rates",
    "Tally",
    "attempts",
    "audit",
    "certify",
    "certify_network",
    "certify_slices",
    "certify_tallies",
    "certify_tally",
    "privacy_curve",
    "rows_needed",
]
