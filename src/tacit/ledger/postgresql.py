"""The ledger's rules as a PostgreSQL server enforces them: two functions, through which all spending goes.

They run with the rights of the ledger's owner (SECURITY DEFINER) and look names up in the ledger's own schema alone.
Whoever may call them and read the tables can append a link to the chain, and do nothing else. The server refuses costs
below zero, sums beyond the budget, times that are not now, and details that are not written as `entries.canonical`
writes them, since readers take the digest of that form.
"""

from __future__ import annotations

from typing import Any

from .entries import FIELDS

LOCK, APPEND = "tacit_lock", "tacit_append"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}\+00:00$"
_DEEPEST = 100
"""How deep lists and objects in a detail may be nested, which is less than Python can read."""
_LONGEST = 4300
"""Digits of a whole number in a detail: Python reads no more."""

_COLUMNS = tuple(name for name in FIELDS if name != "schema")
_CONTENT = ", ".join(f"added.{name}" for name in _COLUMNS)

# How Python writes JSON: keys sorted, ASCII alone, no spaces, floats by the fewest digits that tell them from others.
_CANONICAL = rf"""
CREATE OR REPLACE FUNCTION tacit_point(written text, OUT digits text, OUT point integer)
LANGUAGE plpgsql IMMUTABLE
AS $$  -- a positive number is 0.DIGITS times ten to the POINT
DECLARE
    parts text[] := regexp_match(written, '^([0-9]+)[.]?([0-9]*)(?:e([-+][0-9]+))?$');
BEGIN
    digits := ltrim(parts[1] || parts[2], '0');
    point := length(digits) - length(parts[2]) + coalesce(parts[3], '0')::integer;
    digits := rtrim(digits, '0');
END $$;

CREATE OR REPLACE FUNCTION tacit_float(written text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    plain text := ltrim(written, '-');
    given record;
    fewest record;
    form text;
BEGIN
    IF written !~ '^-?[0-9]+([.][0-9]+)?(e[-+][0-9]{{2,3}})?$' OR length(written) > 30 THEN
        RETURN false;
    ELSIF plain = '0.0' THEN
        RETURN true;
    ELSIF plain::double precision = 0 THEN
        RETURN false;
    END IF;
    SELECT * INTO given FROM tacit_point(plain);
    SELECT * INTO fewest FROM tacit_point(plain::double precision::text);
    IF given.point > 16 OR given.point <= -4 THEN
        form := left(given.digits, 1) || CASE WHEN length(given.digits) > 1 THEN '.' ELSE '' END
            || substr(given.digits, 2) || CASE WHEN given.point > 0 THEN 'e+' ELSE 'e-' END
            || CASE WHEN abs(given.point - 1) < 10 THEN '0' ELSE '' END || abs(given.point - 1)::text;
    ELSIF given.point <= 0 THEN
        form := '0.' || repeat('0', -given.point) || given.digits;
    ELSIF given.point >= length(given.digits) THEN
        form := rpad(given.digits, given.point, '0') || '.0';
    ELSE
        form := left(given.digits, given.point) || '.' || substr(given.digits, given.point + 1);
    END IF;
    IF plain <> form THEN
        RETURN false;
    ELSIF length(given.digits) < length(fewest.digits) THEN
        RETURN true;  -- an end of the interval that is rounded to this float: Python takes it, PostgreSQL does not
    ELSIF given <> fewest THEN
        RETURN false;
    ELSIF length(given.digits) = 1 THEN
        RETURN true;
    END IF;
    FOR up IN 0..1 LOOP  -- so one digit less, to either side, must not do
        BEGIN
            IF ((left(given.digits, -1)::numeric + up)::text || 'e' || given.point - length(given.digits) + 1
                )::double precision = plain::double precision THEN
                RETURN false;
            END IF;
        EXCEPTION WHEN numeric_value_out_of_range THEN
            NULL;  -- beyond the largest float
        END;
    END LOOP;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION tacit_hex(digits text) RETURNS integer
LANGUAGE sql IMMUTABLE
AS $$ SELECT ('x' || lpad(digits, 8, '0'))::bit(32)::integer $$;

CREATE OR REPLACE FUNCTION tacit_letters(hidden text) RETURNS integer[]
LANGUAGE sql IMMUTABLE
AS $$  -- the code points of a key, by which Python sorts
    SELECT coalesce(array_agg(CASE
        WHEN length(token) = 14 THEN 65536 + 1024 * (tacit_hex(substr(token, 4, 4)) - 55296)
            + tacit_hex(substr(token, 11, 4)) - 56320
        WHEN length(token) = 7 THEN tacit_hex(substr(token, 4, 4))
        WHEN length(token) = 3 THEN ascii(translate(right(token, 1), 'bfnrt', E'\b\f\n\r\t'))
        WHEN length(token) = 2 THEN ascii(translate(right(token, 1), 'bq', E'\\"'))
        ELSE ascii(token)
    END ORDER BY place), '{{}}')
    FROM (
        SELECT match[1] AS token, place
        FROM regexp_matches(hidden, '(\u007feud[89ab]..\u007feud[c-f]..|\u007feu....|\u007fe.|\u007f.|.)', 'g')
            WITH ORDINALITY AS found(match, place)
    ) AS tokens
$$;

CREATE OR REPLACE FUNCTION tacit_ordered(content json, depth integer) RETURNS text
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    written text := content::text;
BEGIN
    IF depth > {_DEEPEST} THEN
        RAISE EXCEPTION 'a detail that is nested too deeply';
    END IF;
    CASE json_typeof(content)
    WHEN 'object' THEN
        RETURN (
            SELECT '{{' || coalesce(string_agg('"' || key || '":' || tacit_ordered(value, depth + 1), ','
                ORDER BY tacit_letters(key)), '') || '}}'
            FROM (SELECT DISTINCT ON (key COLLATE "C") key, value FROM json_each(content)) AS found
        );
    WHEN 'array' THEN
        RETURN (
            SELECT '[' || coalesce(string_agg(tacit_ordered(value, depth + 1), ',' ORDER BY place), '') || ']'
            FROM json_array_elements(content) WITH ORDINALITY AS found(value, place)
        );
    WHEN 'number' THEN
        RETURN CASE
            WHEN written ~ '[.e]' AND tacit_float(written) THEN written
            WHEN written ~ '^(0|-?[1-9][0-9]*)$' AND length(ltrim(written, '-')) <= {_LONGEST} THEN written
        END;
    ELSE
        RETURN written;
    END CASE;
END $$;

CREATE OR REPLACE FUNCTION tacit_canonical(detail text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    hidden text;
BEGIN
    IF detail !~ '^[ -~]*$' OR detail !~ ('^([^"\\]|"([] !#-[^-~]|\\["\\bfnrt]'
        || '|\\u00(0[0-7bef]|1[0-9a-f]|7f|[89a-f][0-9a-f])|\\u(0[1-9a-f]|[1-9a-f][0-9a-f])[0-9a-f]{{2}})*")*$') THEN
        RETURN false;
    END IF;
    -- Text of the server cannot hold every letter that a detail may: what is escaped stays so, without a backslash.
    hidden := replace(replace(replace(detail, '\\', chr(127) || 'b'), '\"', chr(127) || 'q'), '\', chr(127) || 'e');
    RETURN hidden = tacit_ordered(hidden::json, 1);
END $$;

REVOKE ALL ON FUNCTION tacit_point(text), tacit_float(text), tacit_hex(text), tacit_letters(text),
    tacit_ordered(json, integer), tacit_canonical(text) FROM PUBLIC;
"""  # noqa: S608 — made of constants

_FUNCTIONS = f"""
CREATE FUNCTION {LOCK}() RETURNS SETOF tacit_ledger
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = {{schema}}, pg_temp
AS $$ SELECT * FROM tacit_ledger FOR UPDATE $$;

CREATE FUNCTION {APPEND}(added tacit_records) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = {{schema}}, pg_temp
SET standard_conforming_strings = on SET extra_float_digits = 1
AS $$
DECLARE
    state tacit_ledger;
BEGIN
    SELECT * INTO STRICT state FROM tacit_ledger FOR UPDATE;
    IF (added.id = state.last + 1 AND added.previous = state.digest) IS NOT TRUE THEN
        RAISE EXCEPTION 'a link that does not follow the last one';
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
    IF (added.time ~ '{_TIME}') IS NOT TRUE THEN
        RAISE EXCEPTION 'a time that is not written as a ledger writes it';
    END IF;
    IF (abs(extract(epoch FROM clock_timestamp() - added.time::timestamptz)) < 300) IS NOT TRUE THEN
        RAISE EXCEPTION 'a time that is not now';
    END IF;
    IF (json_typeof(added.detail::json) = 'object' AND (added.what || added.detail) !~ '[\\r\\n]') IS NOT TRUE THEN
        RAISE EXCEPTION 'a detail that is no object, or more than one line';
    END IF;
    IF tacit_canonical(added.detail) IS NOT TRUE THEN
        RAISE EXCEPTION 'a detail that is not written as a ledger writes it';
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
    for functions in (_CANONICAL, _FUNCTIONS):
        connection.exec_driver_sql(functions.replace("{schema}", schema))


def server_time(connection: Any) -> str:
    """The server's clock, in the form of the ledger: no analyst's machine decides when something was spent."""
    form = """to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"')"""
    return str(connection.exec_driver_sql(f"SELECT {form}").scalar())
