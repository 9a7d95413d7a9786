"""Tables from CSV, Parquet and npz files: columns by name, of numbers or of text.

- `read`: a whole table, for learning; the type of a column is not guessed from its records.
- `batches`: some columns of a table of any size, part by part, for auditing; different values stay different.
- `Matrices`: some columns, and a matrix of many numbers for each row, part by part, for auditing vectors.
- `column_names`, `expanded`: the names of columns, all of them or those that match.
- `write_with_column`: a copy of a table with one column set.
- `contents`: what each row holds, as text.
- `occurrences`: how often each different row occurs.
"""

from .formats import Table
from .matrices import Matrices, column_names, expanded
from .parts import batches
from .rows import contents, occurrences
from .whole import read, write_with_column

__all__ = [
    "Matrices",
    "Table",
    "batches",
    "column_names",
    "contents",
    "expanded",
    "occurrences",
    "read",
    "write_with_column",
]
