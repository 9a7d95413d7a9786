"""What `tacit audit` and `tacit audit-model` do: a table, or records and a way of training, in; a report out."""

from .model import audit_model
from .run import audit_file

__all__ = ["audit_file", "audit_model"]
