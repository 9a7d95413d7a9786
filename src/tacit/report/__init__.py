"""Comparisons in; text, JSON and one self-contained HTML file out. The only room that draws."""

from .document import Chapter, Figure, Report, Slider, Step, Table

__all__ = ["Chapter", "Figure", "Report", "Slider", "Step", "Table"]
