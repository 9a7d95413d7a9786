"""Signatures of certificates: DSSE envelopes around in-toto statements, with an Ed25519 key of the owner's.

Files of strangers are read here. Whatever is wrong with one is told in one line. Where there is a key, the signature is
checked before the payload is parsed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..core.errors import InputError, MissingExtraError
from ..runtime.files import plain
from ..runtime.private_files import own_bytes
from .new_files import absent, write_absent

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
_STATEMENT = "https://in-toto.io/Statement/v1"
_LARGEST = 2**26
_LARGEST_KEY = 2**14
_LONGEST_PASSPHRASE = 1000
_SIGNATURE_BYTES = 64
_OPEN_KEY = "chmod 600 it, if nobody else has read it; else make another with tacit certificate keygen"


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A certificate as it was read, signed or not.

    Attributes
    ----------
    signature
        "valid" or "invalid" by the public key that was given, "not checked" where none was given, or "none" where
        nobody signed.
    key_id
        The identifier of the public key that was given, or else what the envelope says about its key, which is a hint
        that anybody could have written; empty if there is neither.
    sha256
        The SHA-256 of the statement's bytes, in hexadecimal digits.
    statement
        The in-toto statement; None if the signature is invalid.
    """

    signature: str
    key_id: str
    sha256: str
    statement: dict[str, Any] | None


def pae(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: DSSE's pre-authentication encoding of the payload's type and the payload.

    Parameters
    ----------
    payload_type
        What the payload is, such as `application/vnd.in-toto+json`.
    payload
        Its bytes.

    References
    ----------
    DSSE protocol, version 1.0.0: https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
    """
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def new_key(key: Path, *, passphrase_file: Path | None = None) -> str:
    """Make a key pair: the private key in `key`, which only its owner can read, and the public key in `key`.pub.

    Neither file is overwritten.

    Parameters
    ----------
    key
        The new file for the private key, in PKCS #8 and PEM.
    passphrase_file
        A file that only its owner can read, whose first line encrypts the private key.

    Returns
    -------
    The identifier of the public key: the SHA-256 of its DER form.

    Raises
    ------
    InputError
        If a file exists or cannot be written, or the passphrase cannot be read.
    """
    serialization, ed25519 = _cryptography()
    public = _public_path(key)
    for path in (key, public):
        absent("key", path)
    passphrase = _passphrase(passphrase_file)
    encryption = (
        serialization.NoEncryption() if passphrase is None else serialization.BestAvailableEncryption(passphrase)
    )
    made = ed25519.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    write_absent("key", key, made.private_bytes(pem, serialization.PrivateFormat.PKCS8, encryption), mode=0o600)
    shown = made.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    try:
        write_absent("key", public, shown, mode=0o644)
    except InputError:
        key.unlink()  # written just now, and of no use without the other
        raise
    return _identifier(made.public_key())


class Signer:
    """Signs in-toto statements with an Ed25519 key.

    Parameters
    ----------
    key
        The private key, a file that only its owner can read.
    passphrase_file
        The file with the passphrase of the key.
    """

    def __init__(self, key: Path, *, passphrase_file: Path | None = None) -> None:
        self._key = _private_key(key, _passphrase(passphrase_file))

    def public(self) -> bytes:
        """The public key in PEM."""
        serialization, _ = _cryptography()
        found: bytes = self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return found

    def envelope(self, statement: bytes) -> dict[str, Any]:
        """A DSSE envelope around a statement's bytes."""
        signed = self._key.sign(pae(PAYLOAD_TYPE, statement))
        key_id = _identifier(self._key.public_key())
        return {
            "payloadType": PAYLOAD_TYPE,
            "payload": base64.b64encode(statement).decode(),
            "signatures": [{"keyid": key_id, "sig": base64.b64encode(signed).decode()}],
        }


def sign(certificate: Path, *, key: Path, out: Path, passphrase_file: Path | None = None) -> Opened:
    """Sign a certificate: write a DSSE envelope with its bytes as they are.

    Parameters
    ----------
    certificate
        An in-toto statement in JSON.
    key
        The private key, a file that only its owner can read.
    out
        The new file for the envelope.
    passphrase_file
        The file with the passphrase of the key.

    Returns
    -------
    What was signed.

    Raises
    ------
    InputError
        If a file cannot be used, or `out` exists.
    """
    content = _content(certificate, "certificate", _LARGEST)
    found = _parsed(content, certificate)
    if _is_envelope(found):
        raise InputError(
            "certificate", str(certificate), requirement="must not be signed yet", remedy="name the unsigned file"
        )
    statement = _statement(found, certificate)
    absent("out", out)
    made = Signer(key, passphrase_file=passphrase_file).envelope(content)
    key_id = made["signatures"][0]["keyid"]
    write_absent("out", out, (json.dumps(made, indent=1) + "\n").encode(), mode=0o666)
    return Opened(signature="valid", key_id=key_id, sha256=hashlib.sha256(content).hexdigest(), statement=statement)


def opened(certificate: Path, *, public_key: Path | None = None) -> Opened:
    """Read a certificate from a stranger, signed or not, and check its signature if there is a public key.

    Parameters
    ----------
    certificate
        An in-toto statement in JSON, or a DSSE envelope around one with one signature.
    public_key
        The signer's public key in PEM, from a place that you trust. What the envelope says about its key is never
        trusted.

    Raises
    ------
    InputError
        If a file cannot be read, or is not what it should be.
    """
    trusted = None if public_key is None else _public_key(public_key)
    content = _content(certificate, "certificate", _LARGEST)
    found = _parsed(content, certificate)
    signature, key_id, payload = "none", "", content
    if _is_envelope(found):
        payload, signed, key_id = _unwrapped(found, certificate)
        signature = "not checked"
        if trusted is not None:
            signature = "valid" if _verifies(trusted, signed, payload) else "invalid"
    if trusted is not None:
        key_id = _identifier(trusted)
    statement = None
    if signature != "invalid":
        statement = _statement(found if signature == "none" else _parsed(payload, certificate), certificate)
    return Opened(signature=signature, key_id=key_id, sha256=hashlib.sha256(payload).hexdigest(), statement=statement)


def _is_envelope(found: dict[str, Any]) -> bool:
    return not found.keys().isdisjoint({"payload", "payloadType", "signatures"})


def _unwrapped(found: dict[str, Any], path: Path) -> tuple[bytes, bytes, str]:
    """An envelope's payload, its signature, and what it says about the key."""
    kind = found.get("payloadType")
    if kind != PAYLOAD_TYPE:
        raise InputError(
            "certificate",
            kind,
            requirement=f"must have the payloadType {PAYLOAD_TYPE}",
            remedy="ask for an envelope around an in-toto statement",
        )
    signatures = found.get("signatures")
    one = signatures[0] if isinstance(signatures, list) and len(signatures) == 1 else None
    if not isinstance(one, dict) or not isinstance(one.get("keyid", ""), str):
        count = len(signatures) if isinstance(signatures, list) else "none"
        raise InputError(
            "certificate",
            f"{count} in {path.name}" if one is None else f"another in {path.name}",
            requirement="must have one signature, with a text as keyid if any",
            remedy="split it into envelopes with a signature each",
        )
    signed = _decoded(one.get("sig"), "sig", path)
    if len(signed) != _SIGNATURE_BYTES:
        raise InputError(
            "certificate",
            f"{len(signed)} in {path.name}",
            requirement=f"must have an Ed25519 signature of {_SIGNATURE_BYTES} bytes",
            remedy="ask for an envelope that was signed with such a key",
        )
    return _decoded(found.get("payload"), "payload", path), signed, one.get("keyid", "")


def _decoded(text: object, field: str, path: Path) -> bytes:
    """Base64 with its padding, in the standard or the URL-safe alphabet; no two texts mean the same bytes."""
    if isinstance(text, str) and text.isascii():
        for alphabet, encode in ((b"+/", base64.b64encode), (b"-_", base64.urlsafe_b64encode)):
            try:
                found = base64.b64decode(text, altchars=alphabet, validate=True)
            except (binascii.Error, ValueError):
                continue
            if encode(found).decode() == text:
                return found
    raise InputError(
        "certificate",
        f"another {field} in {path.name}",
        requirement=f"must have a {field} in canonical base64",
        remedy="ask for the envelope as it was written",
    )


def _parsed(content: bytes, path: Path) -> dict[str, Any]:
    """A JSON object in which no key stands twice, so that no two readers can read it differently."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a key stands twice")
        return found

    def no_number(word: str) -> NoReturn:
        raise ValueError(f"{word} is no number of JSON")

    try:
        found = json.loads(content.decode(), object_pairs_hook=once, parse_constant=no_number)
        json.dumps(found, ensure_ascii=False).encode()
        reason = "" if isinstance(found, dict) else "something else"
    except UnicodeError:  # of the bytes, or of half a surrogate pair
        reason = "text that is not Unicode"
    except json.JSONDecodeError as failure:
        reason = f"{failure.msg} in line {failure.lineno}"
    except RecursionError:
        reason = "too many levels"
    except ValueError as failure:  # also a whole number with thousands of digits
        reason = str(failure).partition(";")[0]
    if reason:
        raise InputError(
            "certificate",
            f"{path.name}: {reason}",
            requirement="must be a JSON object in UTF-8, with every key once",
            remedy="name a certificate",
        )
    return dict(found)


def _statement(found: dict[str, Any], path: Path) -> dict[str, Any]:
    """An in-toto statement whose subjects have names and SHA-256 digests."""
    subjects = found.get("subject")
    whole = (
        found.get("_type") == _STATEMENT
        and isinstance(found.get("predicateType"), str)
        and isinstance(found.get("predicate"), dict)
        and isinstance(subjects, list)
        and all(_is_subject(one) for one in subjects)
    )
    if not whole:
        raise InputError(
            "certificate",
            path.name,
            requirement=f"must be an in-toto statement ({_STATEMENT}) with subject, predicateType and predicate",
            remedy="name a certificate that Tacit wrote",
        )
    return found


def _is_subject(one: object) -> bool:
    digest = one.get("digest") if isinstance(one, dict) else None
    return (
        isinstance(one, dict)
        and isinstance(one.get("name"), str)
        and isinstance(digest, dict)
        and isinstance(digest.get("sha256"), str)
    )


def _content(path: Path, name: str, largest: int) -> bytes:
    plain(path, name)
    with path.open("rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise InputError(
            name,
            f"more in {path.name}",
            requirement=f"must have {largest} bytes at most",
            remedy="name the right file",
        )
    return content


def _passphrase(path: Path | None) -> bytes | None:
    if path is None:
        return None
    lines = own_bytes(path, "passphrase_file", remedy="chmod 600 it").splitlines()
    if not lines or not 0 < len(lines[0]) <= _LONGEST_PASSPHRASE:
        raise InputError(
            "passphrase_file",
            f"{len(lines[0]) if lines else 0} bytes in {path.name}",
            requirement=f"must have a first line of 1 to {_LONGEST_PASSPHRASE} bytes",
            remedy="write the passphrase into it",
        )
    return lines[0]


def _private_key(path: Path, passphrase: bytes | None) -> Ed25519PrivateKey:
    serialization, ed25519 = _cryptography()
    plain(path, "key")
    content = own_bytes(path, "key", remedy=_OPEN_KEY)
    try:
        found = serialization.load_pem_private_key(content[:_LARGEST_KEY], passphrase)
    except TypeError:  # encrypted without a passphrase, or the other way round
        raise InputError(
            "passphrase_file",
            "none" if passphrase is None else "one",
            requirement=f"must{' not' * (passphrase is not None)} be given for the key {path.name}",
            remedy="name the file with the passphrase" if passphrase is None else "leave it out",
        ) from None
    except Exception:  # of many kinds: no PEM, another algorithm, a wrong passphrase
        found = None
    if not isinstance(found, ed25519.Ed25519PrivateKey):
        raise InputError(
            "key",
            path.name,
            requirement="must be an Ed25519 private key in PEM, and the passphrase the right one if it has one",
            remedy="make a key with tacit certificate keygen",
        )
    checked: Ed25519PrivateKey = found
    return checked


def _public_key(path: Path) -> Ed25519PublicKey:
    serialization, ed25519 = _cryptography()
    content = _content(path, "public_key", _LARGEST_KEY)
    try:
        found = serialization.load_pem_public_key(content)
    except Exception:  # of many kinds: no PEM, another algorithm
        found = None
    if not isinstance(found, ed25519.Ed25519PublicKey):
        raise InputError(
            "public_key",
            path.name,
            requirement="must be an Ed25519 public key in PEM",
            remedy="name the signer's .pub file; a private key stays with its owner",
        )
    checked: Ed25519PublicKey = found
    return checked


def _verifies(key: Ed25519PublicKey, signature: bytes, payload: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, pae(PAYLOAD_TYPE, payload))
    except InvalidSignature:
        return False
    return True


def _identifier(key: Ed25519PublicKey) -> str:
    serialization, _ = _cryptography()
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def _cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtraError(
            "signatures must have the package cryptography, got no such package; pip install 'tacit-privacy[sign]'"
        ) from None
    return serialization, ed25519


def _public_path(key: Path) -> Path:
    return key.with_name(f"{key.name}.pub")
