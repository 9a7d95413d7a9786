"""Certificates from tables: what nobody who sees an output can learn about a secret."""

from .attacks import attempts
from .attempt import Attempt, Rates
from .certificate import READINGS, SCOPE, Certificate
from .certifying import certify, certify_tally
from .codes import Code, load_code
from .curve import ImpliedByDP, PrivacyCurve, privacy_curve
from .groups import one_per_group
from .guesses import ClassCertificate, GuessCertificate, NumberCertificate, certify_classes, certify_number
from .members import Membership, membership
from .menu import Menu, MenuOption, release_menu
from .network import certify_network
from .planning import rows_needed
from .record_audit import RecordAttack, RecordAudit, audit_records
from .retraining import Retrained, retrain
from .slices import certify_slices, certify_tallies
from .study import audit_file, audit_model
from .tally import Tally
from .vectors import VectorAudit, audit_vectors
from .verdict import Audit, audit

__all__ = [
    "READINGS",
    "SCOPE",
    "Attempt",
    "Audit",
    "Certificate",
    "ClassCertificate",
    "Code",
    "GuessCertificate",
    "ImpliedByDP",
    "Membership",
    "Menu",
    "MenuOption",
    "NumberCertificate",
    "PrivacyCurve",
    "Rates",
    "RecordAttack",
    "RecordAudit",
    "Retrained",
    "Tally",
    "VectorAudit",
    "attempts",
    "audit",
    "audit_file",
    "audit_model",
    "audit_records",
    "audit_vectors",
    "certify",
    "certify_classes",
    "certify_network",
    "certify_number",
    "certify_slices",
    "certify_tallies",
    "certify_tally",
    "load_code",
    "membership",
    "one_per_group",
    "privacy_curve",
    "release_menu",
    "retrain",
    "rows_needed",
]
