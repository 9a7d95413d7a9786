"""A ledger as a file for reviewers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..core.errors import InputError
from ..runtime.files import one_file, write_whole
from .database import column_names
from .records import canonical


def write_export(read: Callable[[], dict[str, Any]], path: str | Path, *, kept: Iterable[str]) -> None:
    """What `Ledger.to_dict` reads, as `.json` or as `.csv` with one line a record, but never over what is `kept`."""
    target = Path(path).resolve()
    if target.suffix not in (".json", ".csv"):
        raise InputError("the export", str(path), requirement="must end in .json or .csv", remedy="say which you want")
    if any(one_file(target, Path(place)) for place in kept if "://" not in place):
        raise InputError(
            "the export",
            str(path),
            requirement="must be neither the ledger itself nor its anchor",
            remedy="choose another name",
        )
    content = read()
    text = _table(content["records"]) if target.suffix == ".csv" else json.dumps(content, indent=2) + "\n"
    try:
        write_whole(target, text.encode())
    except OSError as failure:
        raise InputError(
            "the export",
            f"{path}: {failure.strerror or failure}",
            requirement="must be writable",
            remedy="choose a folder that exists and is yours to write to",
        ) from None


def _table(records: list[dict[str, Any]]) -> str:
    buffer = io.StringIO(newline="")
    table = csv.DictWriter(buffer, fieldnames=list(records[0] | dict.fromkeys(column_names())))
    table.writeheader()
    for record in records:
        table.writerow({**record, "detail": canonical(record["detail"]) if "detail" in record else ""})
    return buffer.getvalue()
