"""Comparisons in; text, JSON and one self-contained HTML file out. The only room that draws."""

from .document import Figure, Report, Table

__all__ = ["Figure", "Report", "Table"]
