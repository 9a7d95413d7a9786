"""Published experiments, run again, and what goes beyond them."""

from .results import collect, gather

__all__ = ["collect", "gather"]
