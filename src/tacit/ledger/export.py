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
from .entries import canonical


def write_export(read: Callable[[], dict[str, Any]], path: str | Path, *, kept: Iterable[str]) -> None:
    """Write what `read` returns as `.json`, or as `.csv` with a line for each link, but never over a file in `kept`."""
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
    text = _table(content["links"]) if target.suffix == ".csv" else json.dumps(content, indent=2) + "\n"
    try:
        write_whole(target, text.encode())
    except OSError as failure:
        raise InputError(
            "the export",
            f"{path}: {failure.strerror or failure}",
            requirement="must be writable",
            remedy="choose a folder that exists and is yours to write to",
        ) from None


def _table(links: list[dict[str, Any]]) -> str:
    buffer = io.StringIO(newline="")
    table = csv.DictWriter(buffer, fieldnames=list(links[0] | dict.fromkeys(column_names())))
    table.writeheader()
    for link in links:
        table.writerow({**link, "detail": canonical(link["detail"]) if "detail" in link else ""})
    return buffer.getvalue()
