"""The published experiments, run again, and what goes beyond them beside each."""

from .hcr import SETTINGS, Setting, Task, reproduce, steps
from .results import collect, gather

__all__ = ["SETTINGS", "Setting", "Task", "collect", "gather", "reproduce", "steps"]
