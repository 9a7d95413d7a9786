"""Rows in Arrow's stream format, from people who may send anything.

Arrow trusts what it reads: offsets that point elsewhere crash the process, a compressed buffer may hold gigabytes, and
a column of nulls has any length at no cost. So compressed streams and nested columns are refused, and lengths and
offsets are checked before a value is read.
"""

from __future__ import annotations

import struct
from typing import Any

from ..core.errors import InputError
from .rows import MOST_ROWS


def rows(content: bytes) -> list[dict[str, Any]]:
    """The rows of a stream, by column name.

    Parameters
    ----------
    content
        The stream.

    Returns
    -------
    The rows, at most one more than are accepted.

    Raises
    ------
    InputError
        If it is no such stream, is compressed, or has columns other than numbers, booleans and text.
    """
    import pyarrow as pa

    found: list[dict[str, Any]] = []
    try:
        for message in pa.ipc.MessageReader.open_stream(content):
            if _compressed(message):
                raise _refused("a compressed stream")
        with pa.ipc.open_stream(content) as stream:
            names = stream.schema.names
            if len(set(names)) < len(names):
                raise _refused("a column twice")
            for field in stream.schema:
                if not _plain(field.type):
                    raise _refused(f"a column of {str(field.type)[:60]}")
            for batch in stream:
                if len(found) + batch.num_rows > MOST_ROWS:
                    raise _refused(f"more than {MOST_ROWS} rows")
                batch.validate(full=True)
                found += batch.to_pylist()
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError, OverflowError) as failure:
        if isinstance(failure, InputError):
            raise
        raise _refused("something else") from None
    return found


def _refused(got: str) -> InputError:
    return InputError(
        "the body",
        got,
        requirement=f"must be a stream of Arrow, not compressed, with numbers and text in at most {MOST_ROWS} rows",
        remedy="write it with pyarrow.ipc.new_stream",
    )


def _plain(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    checks = (types.is_integer, types.is_floating, types.is_boolean, types.is_string, types.is_large_string)
    return types.is_null(kind) or any(check(kind) for check in checks)


def _compressed(message: Any) -> bool:
    """Whether the buffers of a message are compressed, by its metadata: pyarrow tells only after it has read them.

    A table of FlatBuffers begins with the distance to the list of its fields' places. Of a message, field 2 is the
    header; of a dictionary's header, field 1 is the batch; of a batch, field 3 is the compression.
    """
    if message.type not in ("record batch", "dictionary"):
        return False
    metadata = message.metadata.to_pybytes()

    def number(form: str, place: int) -> int:
        return int(struct.unpack_from(form, metadata, place)[0])

    def field(table: int, index: int) -> int | None:
        fields = table - number("<i", table)
        inside = 4 + 2 * index < number("<H", fields)
        place = number("<H", fields + 4 + 2 * index) if inside else 0
        return table + place if place else None

    def target(table: int, index: int) -> int:
        place = field(table, index)
        if place is None:
            raise ValueError("a message without what it must hold")
        return place + number("<I", place)

    batch = target(number("<I", 0), 2)
    if message.type == "dictionary":
        batch = target(batch, 1)
    return field(batch, 3) is not None
