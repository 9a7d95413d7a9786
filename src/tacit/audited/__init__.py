"""`tacit audit`: a table of secrets and outputs in, a report out: what nobody can learn, and what attacks did learn."""

from .run import audit
from .task import Task

__all__ = ["Task", "audit"]
