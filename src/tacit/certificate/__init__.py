"""Guarantees as files that somebody else can check, without Tacit and without the data (docs/certificates.md)."""

from .statement import Certified, certified
from .verifying import Verified, verify

__all__ = ["Certified", "Verified", "certified", "verify"]
