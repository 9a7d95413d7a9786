"""Comparisons in; text, JSON and one self-contained HTML file out. The only package that draws."""

from .document import Chapter, Figure, Report, Slider, Step, Table
from .proving import Proofs, Theorem, proofs, theorems

__all__ = ["Chapter", "Figure", "Proofs", "Report", "Slider", "Step", "Table", "Theorem", "proofs", "theorems"]
