"""Ask a service from Python, or by `tacit query`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from ..core.errors import InputError, MissingExtraError, TacitError
from ..runtime import tables
from ..runtime.files import write_whole
from ..runtime.private_files import own_bytes
from . import heads
from .rows import MOST_ROWS
from .run import LOCAL

_TRIES = 5
_SECONDS = 60.0


class ServiceError(TacitError):
    """A service that refuses a request, or cannot be reached.

    Attributes
    ----------
    status
        The status of HTTP; 0 if there was no answer.
    """

    def __init__(self, line: str, status: int = 0) -> None:
        super().__init__(line)
        self.status = status


class Client:
    """Asks a service.

    Parameters
    ----------
    url
        Its address, such as https://example.org:8710.
    token
        The token.
    authority
        A file in PEM with the certificate of the service, or of who signed it, if the system does not know them.
    insecure
        Allow HTTP to another machine, where the token and the rows can be read on the way.
    """

    def __init__(self, url: str, token: str, *, authority: Path | str | None = None, insecure: bool = False) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtraError(
                "asking a service must have httpx, got no such package; pip install 'tacit-privacy[service]'"
            ) from None
        if not str(url).startswith(("http://", "https://")):
            raise InputError("url", url, requirement="must begin with http:// or https://", remedy="write it whole")
        if str(url).startswith("http://") and urlsplit(str(url)).hostname not in LOCAL and not insecure:
            raise InputError(
                "url",
                url,
                requirement="must be https:// for another machine, as the token could be read on the way",
                remedy="use https://, or add `insecure=True`",
            )

        import ssl

        trusted = True if authority is None else ssl.create_default_context(cafile=str(authority))
        self._failed = httpx.HTTPError
        self._http = httpx.Client(
            base_url=str(url), headers={"Authorization": f"Bearer {token}"}, timeout=_SECONDS, verify=trusted
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def ask(self, rows: Sequence[Any], *, advance: Callable[[str], None] = lambda _: None) -> list[dict[str, Any]]:
        """Ask about rows.

        Parameters
        ----------
        rows
            Objects by column name, or lists in the order of the columns. There may be any number.
        advance
            Called with a line about the progress.

        Returns
        -------
        For each row its `status`, `label`, and whether it was `recorded`.

        Raises
        ------
        ServiceError
            If the service refuses, or cannot be reached. What was decided before is on record there, and asking again
            costs nothing.
        """
        found: list[dict[str, Any]] = []
        for start in range(0, len(rows), MOST_ROWS):
            part = list(rows[start : start + MOST_ROWS])
            found += self._sent("POST", "/v1/queries", json={"rows": part})["answers"]
            advance(f"{len(found)} of {len(rows)} rows asked")
        return found

    def about(self) -> dict[str, Any]:
        """What is served, and what is proven about it."""
        return self._sent("GET", "/v1/service")

    def budget(self) -> dict[str, Any]:
        """What is left of the session."""
        return self._sent("GET", "/v1/budget")

    def ledger(self) -> dict[str, Any]:
        """The whole ledger, for auditors."""
        return self._sent("GET", "/v1/ledger")

    def check_head(self, path: Path | str, public_key: Path | str) -> int:
        """Check that the ledger goes on from the head in a file, and keep the latest head there.

        Parameters
        ----------
        path
            The file with the head; made if it does not exist.
        public_key
            The owner's public key, from a place that you trust.

        Returns
        -------
        The number of links since the head that was kept.
        """
        place, key, ledger = Path(path), Path(public_key), self.ledger()
        content = (json.dumps(ledger.get("head"), indent=1) + "\n").encode()
        since = heads.check(place, key, ledger) if place.exists() else 0
        latest = place.with_name(f".{place.name}.new")
        try:
            write_whole(latest, content)
            if heads.check(latest, key, ledger):  # an old head that somebody shows again would be worth less
                raise InputError(
                    "the head of the ledger",
                    "an earlier one",
                    requirement="must be its last link",
                    remedy="ask again; if it stays so, somebody between you and the service holds heads back",
                )
            write_whole(place, content)
        finally:
            latest.unlink(missing_ok=True)
        return since

    def _sent(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        for left in reversed(range(_TRIES)):
            try:
                response = self._http.request(method, path, **options)
            except self._failed as failure:
                raise ServiceError(
                    f"the service must be reachable, got {type(failure).__name__} from {self._http.base_url}; "
                    "check the address, and that it runs"
                ) from None
            if response.status_code != 429 or not left:
                break
            time.sleep(float(response.headers.get("retry-after", "1")))
        try:
            found = response.json()
        except ValueError:
            found = None
        if response.status_code != 200 or not isinstance(found, dict):
            line = found.get("error") if isinstance(found, dict) else None
            raise ServiceError(
                str(line or f"the service must answer, got status {response.status_code}; see its log"),
                response.status_code,
            )
        return found


def query_file(
    url: str,
    table: Path | str,
    *,
    token_file: Path | str,
    out: Path | str,
    authority: Path | str | None = None,
    insecure: bool = False,
    advance: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Ask a service about all rows of a table, and write the table with the answers; this is what `tacit query` does.

    Parameters
    ----------
    url
        The address of the service.
    table
        A CSV or Parquet file with the columns that teachers know; others are left out of the query.
    token_file
        A file that only you can read, with the token in its first line.
    out
        The file to write, of the same kind as the table.
    authority
        A file in PEM with the certificate of the service, or of who signed it.
    insecure
        Allow HTTP to another machine.
    advance
        Called with a line about the progress.

    Returns
    -------
    The numbers of rows by what was told, and the budget left.
    """
    source, target = Path(table), Path(out)
    if source.suffix.lower() != target.suffix.lower():
        raise InputError(
            "out", str(out), requirement=f"must end with {source.suffix}, as the table does", remedy="name it so"
        )
    token = read_token(token_file)
    found = tables.read(source, name="table")
    with Client(url, token, authority=authority, insecure=insecure) as client:
        about = client.about()
        wanted = [column["name"] for column in about["columns"]]
        kinds = {column["name"]: column["kind"] for column in about["columns"]}
        missing = [name for name in wanted if name not in found]
        if missing:
            raise InputError(
                "table",
                f"no column {missing[0]!r}",
                requirement="must have every column that teachers know",
                remedy="add it, empty if it is not known",
            )
        columns = [_plain(found[name], numeric=kinds[name] == "number") for name in wanted]
        answers = client.ask([list(row) for row in zip(*columns, strict=True)], advance=advance)
        budget = client.budget()
    label = f"{about['label']}"
    tables.write_with_column(target, source, label, [answer["label"] for answer in answers], rows=None, without=None)
    told = {
        status: sum(answer["status"] == status for answer in answers)
        for status in ("answered", "refused", "spent", "quota")
    }
    return {"rows": len(answers), **told, "recorded": sum(a["recorded"] for a in answers), "budget": budget}


def read_token(path: Path | str) -> str:
    """The token in the first line of a file that only its owner can read."""
    lines = own_bytes(Path(path), "token_file", remedy="chmod 600 it").decode(errors="replace").splitlines()
    if not lines or not lines[0].strip():
        raise InputError("token_file", str(path), requirement="must hold a token", remedy="write the token into it")
    return lines[0].strip()


def _plain(column: Any, *, numeric: bool) -> list[Any]:
    """A column in the types of JSON; what is no number in a numeric column is missing, as for the teachers."""
    import math

    import numpy as np

    from ..learning.columns import numbers, texts

    if numeric:
        return [None if math.isnan(value) else value for value in numbers(np.asarray(column)).tolist()]
    return texts(np.asarray(column, dtype=object))
