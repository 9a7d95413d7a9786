"""The published experiments, run again, and what goes beyond them beside each."""

from .hcr import SETTINGS, Setting, Task, reproduce, steps
from .results import collect

__all__ = ["SETTINGS", "Setting", "Task", "collect", "reproduce", "steps"]
