"""The fields of a CSV file exactly as written, part by part: text, including the quotes around it.

"a" and a mean the same in CSV, but whoever sees the file sees the quotes, so a certificate must not merge the two.
Every quote is doubled before pyarrow reads it, so that pyarrow returns the quotes of the file.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import InputError
from .formats import loaded_arrow, reading

_BYTES_AT_ONCE = 2**23
_LONGEST_RECORD = 2**26
_QUOTE, _NEWLINE = 0x22, 0x0A
_AROUND = np.frombuffer(b",\r\n", dtype=np.uint8)  # what may precede or follow a field


def header(path: Path, name: str) -> list[str]:
    """The names of the columns, including quotes around them."""
    arrow = loaded_arrow()
    beginning = next(_parts(path, name), (b"", 1.0))[0]
    with reading(path, name):
        read = arrow.csv.ReadOptions(block_size=max(1, len(beginning)), use_threads=False)
        parse = arrow.csv.ParseOptions(newlines_in_values=True)
        names: list[str] = arrow.csv.read_csv(arrow.py_buffer(beginning), read, parse).column_names
    return names


def require_clear_quotes(path: Path, name: str) -> None:
    """Refuse a file in which a quote could swallow the lines of other records."""
    for _ in _parts(path, name):
        pass


def fields(path: Path, held: Sequence[str], name: str) -> Iterator[tuple[Any, float]]:
    """Yield the columns, by their names from `header`, and the share of the file read so far."""
    arrow = loaded_arrow()
    options = arrow.csv.ConvertOptions(
        include_columns=list(held), column_types=dict.fromkeys(held, arrow.string()), strings_can_be_null=False
    )
    names, parse = header(path, name), arrow.csv.ParseOptions(newlines_in_values=True)
    first = True
    for part, share in _parts(path, name):
        read = arrow.csv.ReadOptions(block_size=len(part), column_names=None if first else names)
        with reading(path, name):
            yield arrow.csv.read_csv(arrow.py_buffer(part), read, parse, options), share
        first = False


def unquoted(values: Any) -> Any:
    """Fields without their quotes; fields that are not quoted stay the same."""
    compute = loaded_arrow().compute
    inner = compute.replace_substring(compute.utf8_slice_codeunits(values, 1, -1), '""', '"')
    return compute.if_else(is_quoted(values), inner, values)


def is_quoted(values: Any) -> Any:
    """Which fields are quoted; no other field begins with a quote."""
    return loaded_arrow().compute.starts_with(values, '"')


def _parts(path: Path, name: str) -> Iterator[tuple[bytes, float]]:
    """Yield complete records with every quote doubled, and the share of the file read so far."""
    with reading(path, name), path.open("rb") as file:
        size, left = max(1, path.stat().st_size), file.read(len(codecs.BOM_UTF8)).removeprefix(codecs.BOM_UTF8)
        while True:
            more = file.read(_BYTES_AT_ONCE)
            part, left = _whole_records(left + more) if more else (left, b"")
            if len(left) > _LONGEST_RECORD:
                raise _unclear(name, f"a record of more than {_LONGEST_RECORD} bytes")
            if part.strip(b"\r\n"):
                yield _doubled(part, name), file.tell() / size
            if not more:
                return


def _whole_records(block: bytes) -> tuple[bytes, bytes]:
    """Split after the last end of a line that is not within quotes."""
    end = block.rfind(b"\n") + 1
    if b'"' in block:
        here = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero((here == _NEWLINE) & ~_inside(here == _QUOTE))
        end = int(ends[-1]) + 1 if len(ends) else 0
    return block[:end], block[end:]


def _inside(quote: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which bytes follow an odd number of quotes."""
    found: NDArray[np.bool_] = np.logical_xor.accumulate(quote) ^ quote
    return found


def _doubled(part: bytes, name: str) -> bytes:
    """The same records, written so that the quotes around a field become part of its text."""
    if b'"' not in part:
        return part
    here = np.frombuffer(part, dtype=np.uint8)
    quote = here == _QUOTE
    inside = _inside(quote)
    if int(quote.sum()) % 2:
        raise _unclear(name, "a quote that is never closed")
    edge = _AROUND[-1:]
    before, after = np.concatenate([edge, here[:-1]]), np.concatenate([here[1:], edge])
    first = quote & inside & (after == _QUOTE)  # the first of two quotes that mean one
    second = np.concatenate([[False], first[:-1]])
    opening, closing = quote & ~inside & ~second, quote & inside & ~first
    if not (np.isin(before[opening], _AROUND).all() and np.isin(after[closing], _AROUND).all()):
        raise _unclear(name, "a quote inside a field")
    return np.repeat(here, 1 + quote + (opening | closing)).tobytes()


def _unclear(name: str, found: str) -> InputError:
    return InputError(
        name,
        found,
        requirement="must have quotes only around whole fields, and double those inside",
        remedy="write it again with a CSV writer",
    )
