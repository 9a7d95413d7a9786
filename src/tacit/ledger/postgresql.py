"""What a PostgreSQL server holds of the ledger's rules: two functions, the only ways in for who spends.

They run with the rights of the ledger's owner (SECURITY DEFINER) and look names up in the ledger's own schema alone.
Who may call them and read the tables can add a record that follows the last one, and nothing else: no cost below zero,
no sum beyond the budget, no other time than the server's, no change of what stands.
"""

from __future__ import annotations

from typing import Any

from .records import FIELDS

LOCK, APPEND = "tacit_lock", "tacit_append"

_COLUMNS = tuple(name for name in FIELDS if name != "schema")
_CONTENT = ", ".join(f"added.{name}" for name in _COLUMNS)

_FUNCTIONS = f"""
CREATE FUNCTION {LOCK}() RETURNS SETOF tacit_ledger
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = {{schema}}, pg_temp
AS $$ SELECT * FROM tacit_ledger FOR UPDATE $$;

CREATE FUNCTION {APPEND}(added tacit_records) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = {{schema}}, pg_temp
AS $$
DECLARE
    state tacit_ledger;
BEGIN
    SELECT * INTO STRICT state FROM tacit_ledger FOR UPDATE;
    IF (added.id = state.last + 1 AND added.previous = state.digest) IS NOT TRUE THEN
        RAISE EXCEPTION 'a record that does not follow the last one';
    END IF;
    IF added.number <> 0 AND NOT EXISTS (SELECT FROM tacit_records WHERE id = added.entry AND number = 0) THEN
        RAISE EXCEPTION 'a note of no entry';
    END IF;
    IF (added.epsilon::numeric >= 0 AND added.delta::numeric >= 0
        AND added.spent_epsilon::numeric = state.spent_epsilon::numeric + added.epsilon::numeric
        AND added.spent_delta::numeric = state.spent_delta::numeric + added.delta::numeric) IS NOT TRUE THEN
        RAISE EXCEPTION 'a cost below zero, or a sum that does not fit';
    END IF;
    IF added.spent_epsilon::numeric > state.epsilon::numeric OR added.spent_delta::numeric > state.delta::numeric THEN
        RAISE EXCEPTION 'a cost beyond the budget';
    END IF;
    IF (abs(extract(epoch FROM clock_timestamp() - added.time::timestamptz)) < 300) IS NOT TRUE THEN
        RAISE EXCEPTION 'a time that is not now';
    END IF;
    IF (json_typeof(added.detail::json) = 'object' AND (added.what || added.detail) !~ '[\\r\\n]') IS NOT TRUE THEN
        RAISE EXCEPTION 'a detail that is no object, or more than one line';
    END IF;
    IF (added.digest = encode(sha256(convert_to(concat_ws(E'\\n', {_CONTENT}), 'UTF8')), 'hex')) IS NOT TRUE THEN
        RAISE EXCEPTION 'a digest that does not fit';
    END IF;
    INSERT INTO tacit_records SELECT added.*;
    UPDATE tacit_ledger SET last = added.id, digest = added.digest,
        spent_epsilon = added.spent_epsilon, spent_delta = added.spent_delta;
END $$;

REVOKE ALL ON FUNCTION {LOCK}(), {APPEND}(tacit_records) FROM PUBLIC;
"""  # noqa: S608 — made of constants


def create_functions(connection: Any) -> None:
    """In the schema in which the tables are."""
    schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar()
    connection.exec_driver_sql(_FUNCTIONS.format(schema=schema))


def server_time(connection: Any) -> str:
    """The server's clock, as records hold times: no analyst's machine says when something was spent."""
    form = """to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')"""
    return str(connection.exec_driver_sql(f"SELECT {form}").scalar())
