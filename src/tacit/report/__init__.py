"""Comparisons in; text, JSON and one self-contained HTML file out. The only package that draws."""

from .document import Chapter, Report
from .parts import BROKEN, FINE, WEAK, Change, Figure, Slider, Step, Table, Verdict
from .proving import Proofs, Theorem, proofs, theorems

__all__ = [
    "BROKEN",
    "FINE",
    "WEAK",
    "Change",
    "Chapter",
    "Figure",
    "Proofs",
    "Report",
    "Slider",
    "Step",
    "Table",
    "Theorem",
    "Verdict",
    "proofs",
    "theorems",
]
