"""`tacit audit`: a table of any size in, certificate, attacks and verdict out."""

from .run import audit_file

__all__ = ["audit_file"]
