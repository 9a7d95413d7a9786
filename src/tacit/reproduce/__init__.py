"""The published experiments, run again, and what goes beyond them beside each."""

from .results import collect, gather

__all__ = ["collect", "gather"]
