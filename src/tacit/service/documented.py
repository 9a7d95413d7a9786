"""What each address takes and returns, for the OpenAPI description at /v1/openapi.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .rows import LONGEST, MOST_ROWS

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string", "description": "one line: what, requirement, value, remedy"}},
}
_REFUSED = {
    400: "the request is no HTTP",
    401: "no token that is known",
    403: "a token with another role",
    408: "the body did not arrive in time",
    413: "the request is too large",
    415: "neither JSON nor Arrow",
    422: "a request that cannot be understood",
    429: "too many rows in a second",
    503: "the record cannot be read or written now",
}
SECURITY = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
_VALUES: dict[str, dict[str, Any]] = {
    "number": {"type": ["number", "null"]},
    "text": {
        "anyOf": [{"type": "string", "maxLength": LONGEST}, {"type": ["number", "boolean", "null"]}],
    },
}
_BUDGET = {
    "type": "object",
    "required": ["epsilon", "delta", "answered", "refused", "refusals_left", "stopped"],
    "properties": {
        "epsilon": {"type": "number", "description": "the privacy loss ε of the whole session"},
        "delta": {"type": "number"},
        "answered": {"type": "integer", "minimum": 0},
        "refused": {"type": "integer", "minimum": 0},
        "refusals_left": {"type": "integer", "minimum": 0},
        "stopped": {"type": "boolean", "description": "whether the last refusal was made: nothing fresh is answered"},
        "token": {"type": "object"},
    },
}
_ANSWERS = {
    "type": "object",
    "required": ["answers", "budget"],
    "properties": {
        "answers": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["status", "label", "recorded"],
                "properties": {
                    "status": {"enum": ["answered", "refused", "spent", "quota"]},
                    "label": {"type": ["string", "number", "boolean", "null"]},
                    "recorded": {"type": "boolean", "description": "it was on record, and cost nothing"},
                },
            },
        },
        "budget": _BUDGET,
    },
}


def _operation(
    summary: str,
    found: dict[str, Any] | None,
    *refusals: int,
    body: dict[str, Any] | None = None,
    parameters: list[dict[str, Any]] | None = None,
    secured: bool = True,
    media: str = "application/json",
) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if secured:
        extra["security"] = [{"token": []}]
        refusals = (401, 403, *refusals)
    if body is not None:
        extra["requestBody"] = {"required": True, "content": body}
    if parameters is not None:
        extra["parameters"] = parameters
    answers: dict[int | str, dict[str, Any]] = {
        200: {"description": "Successful response", "content": {media: {"schema": found or {"type": "object"}}}}
    }
    for status in sorted({*refusals, 400}):
        answers[status] = {"description": _REFUSED[status], "content": {"application/json": {"schema": _ERROR}}}
    return {"summary": summary, "responses": answers, "openapi_extra": extra}


def _column(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": True, "description": description, "schema": {"type": "string"}}


def queries_operation(kinds: Mapping[str, str]) -> dict[str, Any]:
    """The address for queries about rows with these columns, each "number" or "text"."""
    values = {name: _VALUES[kind] for name, kind in kinds.items()}
    by_name = {"type": "object", "required": list(values), "additionalProperties": False, "properties": values}
    in_order = {"type": "array", "prefixItems": list(values.values()), "minItems": len(values), "maxItems": len(values)}
    rows = {"type": "array", "minItems": 1, "maxItems": MOST_ROWS, "items": {"anyOf": [by_name, in_order]}}
    asked = {"type": "object", "required": ["rows"], "additionalProperties": False, "properties": {"rows": rows}}
    return _operation(
        "Labels for rows, or refusals",
        _ANSWERS,
        *(408, 413, 415, 422, 429, 503),
        body={
            "application/json": {"schema": asked},
            "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
        },
    )


OPERATIONS: dict[str, dict[str, Any]] = {
    "service": _operation("What is served, and what is proven about it", None, secured=False),
    "budget": _operation("What is left of the session", _BUDGET),
    "ledger": _operation("The whole ledger, for auditors", None, 503),
    "head": _operation("The ledger's last link, signed, for auditors to keep", None, 503),
    "audits": _operation(
        "Certify a table of scores, and attack it; nothing is kept",
        None,
        *(408, 413, 422, 429),
        body={
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
        parameters=[
            _column("secret", "the column with the secret"),
            _column("output", "the column that the adversary sees"),
        ],
    ),
    "health": _operation("Whether the process lives", None, secured=False),
    "ready": _operation("Whether answers can leave", None, 503, secured=False),
    "metrics": _operation(
        "Counters for Prometheus", {"type": "string"}, secured=False, media="text/plain; version=1.0.0; charset=utf-8"
    ),
}
