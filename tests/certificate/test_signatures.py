"""Signatures of certificates: DSSE to the letter, keys that stay private, and one line for hostile files."""

import base64
import hashlib
import json
import os
import random
import shutil
import stat
import subprocess
from collections import Counter

import pytest
from commands import assert_one_line_error, run
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, utils

from tacit import InputError
from tacit.certificate.claims import contents
from tacit.certificate.signatures import PAYLOAD_TYPE, new_key, opened, pae, sign

STATEMENT = {
    "_type": "https://in-toto.io/Statement/v1",
    "subject": [{"name": "student.skops", "digest": {"sha256": "ab" * 32}}],
    "predicateType": "urn:tacit-privacy:certificate:v1",
    "predicate": {
        "command": "audit",
        "title": "What predicted tells about member",
        "claims": [
            {
                "statement": "advantage in telling 1 from 0 by predicted is at most 0.0261",
                "theorem": [{"name": "tacit.theory.certificates.advantage_upper", "version": 1}],
                "inputs": {},
                "claimed": {"side": "at most", "value": "0x1.aaaaaap-6"},
                "failure_probability": "1/20",
                "adversary": "anyone who sees only predicted",
                "assumptions": [{"text": "rows are independent", "checked_by": "you"}],
            }
        ],
        "not_revealed": ["the data themselves"],
        "made_by": {"tacit": "0.2.0", "python": "3.11.7", "seed": 0},
        "replay": None,
    },
}


@pytest.fixture
def signed(tmp_path):
    """A folder with a certificate, a key pair, and the signed certificate."""
    (tmp_path / "certificate.json").write_text(json.dumps(STATEMENT), encoding="utf-8")
    new_key(tmp_path / "owner.key")
    sign(tmp_path / "certificate.json", key=tmp_path / "owner.key", out=tmp_path / "signed.json")
    return tmp_path


def envelope(folder):
    return json.loads((folder / "signed.json").read_text())


def test_the_bytes_that_are_signed_are_those_of_the_specification():
    """DSSE's own test vector: the encoding, and that its signature is one of it."""
    kind, body = "http://example.com/HelloWorld", b"hello world"
    assert pae(kind, body) == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    x = 46950820868899156662930047687818585632848591499744589407958293238635476079160
    y = 5640078356564379163099075877009565129882514886557779369047442380624545832820
    raw = base64.b64decode("A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA==")
    signature = utils.encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    key.verify(signature, pae(kind, body), ec.ECDSA(hashes.SHA256()))


def test_lengths_are_counted_in_bytes():
    assert pae("é", "ε\n".encode()) == "DSSEv1 2 é 3 ε\n".encode()
    assert pae("", b"") == b"DSSEv1 0  0 "


def test_a_signature_is_of_the_bytes_of_the_file_as_they_are(signed):
    found = envelope(signed)
    assert set(found) == {"payloadType", "payload", "signatures"}
    content = (signed / "certificate.json").read_bytes()
    assert base64.b64decode(found["payload"]) == content
    assert found["payloadType"] == PAYLOAD_TYPE == "application/vnd.in-toto+json"
    key = serialization.load_pem_public_key((signed / "owner.key.pub").read_bytes())
    (one,) = found["signatures"]
    key.verify(base64.b64decode(one["sig"]), pae(PAYLOAD_TYPE, content))
    read = opened(signed / "signed.json", public_key=signed / "owner.key.pub")
    assert (read.signature, read.statement) == ("valid", STATEMENT)
    assert read.sha256 == hashlib.sha256(content).hexdigest()
    assert read.key_id == one["keyid"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is another implementation, not ours")
def test_openssl_reads_the_keys_and_verifies_the_signature(signed):
    found = envelope(signed)
    (signed / "pae").write_bytes(pae(found["payloadType"], base64.b64decode(found["payload"])))
    (signed / "sig").write_bytes(base64.b64decode(found["signatures"][0]["sig"]))
    verify = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "owner.key.pub", "-rawin", "-in", "pae"]
    subprocess.run([*verify, "-sigfile", "sig"], cwd=signed, check=True, capture_output=True)
    der = ["openssl", "pkey", "-pubin", "-in", "owner.key.pub", "-outform", "DER"]
    shown = subprocess.run(der, cwd=signed, check=True, capture_output=True).stdout
    assert hashlib.sha256(shown).hexdigest() == found["signatures"][0]["keyid"]


def test_only_the_owner_can_read_a_private_key_and_none_is_overwritten(tmp_path):
    before = os.umask(0)
    try:
        new_key(tmp_path / "owner.key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "owner.key").stat().st_mode) == 0o600
    held = (tmp_path / "owner.key").read_bytes(), (tmp_path / "owner.key.pub").read_bytes()
    with pytest.raises(InputError, match="none is overwritten"):
        new_key(tmp_path / "owner.key")
    (tmp_path / "other.key.pub").write_text("mine")
    with pytest.raises(InputError, match="none is overwritten"):
        new_key(tmp_path / "other.key")
    assert not (tmp_path / "other.key").exists()
    (tmp_path / "link.key").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="none is overwritten"):
        new_key(tmp_path / "link.key")
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(InputError, match="can be written"):
        new_key(tmp_path / "absent" / "owner.key")
    assert held == ((tmp_path / "owner.key").read_bytes(), (tmp_path / "owner.key.pub").read_bytes())


def test_a_key_that_others_can_read_is_refused(signed):
    (signed / "owner.key").chmod(0o640)
    with pytest.raises(InputError, match="only you can read"):
        sign(signed / "certificate.json", key=signed / "owner.key", out=signed / "again.json")


def test_a_passphrase_locks_the_private_key(signed):
    for name, text in (("right", "correct horse\n"), ("wrong", "battery staple\n"), ("empty", "\n")):
        (signed / name).write_text(text)
        (signed / name).chmod(0o600)
    new_key(signed / "locked.key", passphrase_file=signed / "right")
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in (signed / "locked.key").read_bytes()
    serialization.load_pem_private_key((signed / "locked.key").read_bytes(), b"correct horse")

    def attempt(key, passphrase):
        given = None if passphrase is None else signed / passphrase
        return sign(signed / "certificate.json", key=signed / key, out=signed / "new.json", passphrase_file=given)

    for key, passphrase, match in (
        ("locked.key", None, "passphrase_file must be given"),
        ("locked.key", "wrong", "the passphrase the right one"),
        ("locked.key", "empty", "first line"),
        ("owner.key", "right", "passphrase_file must not be given"),
    ):
        with pytest.raises(InputError, match=match):
            attempt(key, passphrase)
        assert not (signed / "new.json").exists()
    (signed / "right").chmod(0o644)
    with pytest.raises(InputError, match="only you can read"):
        attempt("locked.key", "right")
    (signed / "right").chmod(0o600)
    attempt("locked.key", "right")
    assert opened(signed / "new.json", public_key=signed / "locked.key.pub").signature == "valid"


def test_keys_of_other_kinds_are_refused(signed):
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    other = ec.generate_private_key(ec.SECP256R1())
    (signed / "ec.key").write_bytes(other.private_bytes(pem, pkcs8, serialization.NoEncryption()))
    (signed / "ec.key").chmod(0o600)
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    (signed / "ec.pub").write_bytes(other.public_key().public_bytes(pem, spki))
    (signed / "bytes").write_bytes(os.urandom(100))
    (signed / "bytes").chmod(0o600)
    for key in ("ec.key", "bytes", "owner.key.pub"):
        (signed / key).chmod(0o600)
        with pytest.raises(InputError, match="must be an Ed25519 private key"):
            sign(signed / "certificate.json", key=signed / key, out=signed / "new.json")
    for key in ("ec.pub", "bytes", "owner.key"):
        with pytest.raises(InputError, match="must be an Ed25519 public key"):
            opened(signed / "signed.json", public_key=signed / key)


def test_another_payload_or_another_key_is_invalid_and_shows_nothing(signed, here):
    new_key(signed / "other.key")
    assert opened(signed / "signed.json", public_key=signed / "other.key.pub").signature == "invalid"
    found = envelope(signed)
    claim = json.loads(base64.b64decode(found["payload"]))
    claim["predicate"]["claims"][0]["claimed"]["value"] = "0x0p+0"
    found["payload"] = base64.b64encode(json.dumps(claim).encode()).decode()
    (signed / "swapped.json").write_text(json.dumps(found))
    read = opened(signed / "swapped.json", public_key=signed / "owner.key.pub")
    assert (read.signature, read.statement) == ("invalid", None)
    finished = here(signed, "certificate", "show", "swapped.json", "--public-key", "owner.key.pub")
    assert finished.returncode == 1
    assert "Signature: INVALID." in finished.stdout
    assert "advantage" not in finished.stdout
    # A payload that is no statement at all is not looked at, either.
    found["payload"] = base64.b64encode(b"{").decode()
    (signed / "broken.json").write_text(json.dumps(found))
    assert opened(signed / "broken.json", public_key=signed / "owner.key.pub").signature == "invalid"


def test_the_type_of_the_payload_is_signed(signed):
    """Under another type the same signature is of other bytes, so it cannot be taken over."""
    found = envelope(signed)
    payload, signature = (base64.b64decode(text) for text in (found["payload"], found["signatures"][0]["sig"]))
    key = serialization.load_pem_public_key((signed / "owner.key.pub").read_bytes())
    assert isinstance(key, ed25519.Ed25519PublicKey)
    key.verify(signature, pae(PAYLOAD_TYPE, payload))
    with pytest.raises(InvalidSignature):
        key.verify(signature, pae("application/json", payload))


def test_no_key_given_is_said_to_be_not_checked(signed, here):
    finished = here(signed, "certificate", "show", "signed.json")
    assert finished.returncode == 0
    assert "Signature: NOT CHECKED" in finished.stdout
    assert "at most 0.0261" in finished.stdout
    unsigned = here(signed, "certificate", "show", "certificate.json")
    assert unsigned.returncode == 0
    assert "Signature: NONE." in unsigned.stdout
    asked = here(signed, "certificate", "show", "certificate.json", "--public-key", "owner.key.pub")
    assert asked.returncode == 1
    assert "It must be signed" in " ".join(asked.stdout.split())


def changed(**fields):
    return lambda found: json.dumps(found | fields)


def signature(**fields):
    return lambda found: json.dumps(found | {"signatures": [found["signatures"][0] | fields]})


def loose(text):
    """The same bytes in base64 that is not canonical: spare bits of the last character are set."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    head, pad = text.rstrip("="), "=" * (len(text) - len(text.rstrip("=")))
    assert pad
    made = head[:-1] + alphabet[alphabet.index(head[-1]) + 1] + pad
    assert base64.b64decode(made) == base64.b64decode(text)
    return made


HOSTILE = {
    "another payloadType": (changed(payloadType="application/json"), "payloadType"),
    "no payloadType": (changed(payloadType=None), "payloadType"),
    "two signatures": (lambda found: json.dumps(found | {"signatures": found["signatures"] * 2}), "one signature"),
    "no signature": (changed(signatures=[]), "one signature"),
    "signatures as text": (changed(signatures="sig"), "one signature"),
    "keyid as number": (signature(keyid=7), "one signature"),
    "spare bits in sig": (lambda found: signature(sig=loose(found["signatures"][0]["sig"]))(found), "canonical base64"),
    "line break in sig": (lambda found: signature(sig=found["signatures"][0]["sig"] + "\n")(found), "canonical base64"),
    "sig without padding": (
        lambda found: signature(sig=found["signatures"][0]["sig"].rstrip("="))(found),
        "canonical base64",
    ),
    "sig of 63 bytes": (signature(sig=base64.b64encode(bytes(63)).decode()), "64 bytes"),
    "sig as number": (signature(sig=1), "canonical base64"),
    "payload not base64": (changed(payload="%%%%"), "canonical base64"),
    "payload beyond ASCII": (changed(payload="ÄÄÄÄ"), "canonical base64"),
    "a key twice": (lambda found: json.dumps(found)[:-1] + ', "payload": ""}', "every key once"),
    "a key twice, deep": (
        lambda found: json.dumps(found).replace('"sig":', '"sig": "", "sig":'),
        "every key once",
    ),
    "NaN": (lambda found: json.dumps(found | {"more": float("nan")}), "JSON object"),
    "half a surrogate pair": (lambda found: json.dumps(found | {"more": "\ud800"}), "JSON object"),
    "a number without end": (lambda found: json.dumps(found)[:-1] + ', "more": ' + "9" * 5000 + "}", "JSON object"),
    "levels without end": (lambda _: "[" * 10**5, "JSON object"),
    "a list": (lambda _: "[]", "JSON object"),
    "nothing": (lambda _: "", "JSON object"),
    "not JSON": (lambda _: "-----BEGIN CERTIFICATE-----", "JSON object"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("checked", [True, False])
def test_hostile_envelopes_get_one_line(signed, name, checked):
    make, match = HOSTILE[name]
    (signed / "hostile.json").write_text(make(envelope(signed)), encoding="utf-8")
    with pytest.raises(InputError, match=match) as failure:
        opened(signed / "hostile.json", public_key=signed / "owner.key.pub" if checked else None)
    assert len(str(failure.value).splitlines()) == 1
    assert len(str(failure.value)) < 400


def payload_of(**fields):
    return STATEMENT | fields


@pytest.mark.parametrize(
    "payload",
    [
        b"{",
        b"\xff\xfe",
        b'{"_type": 1, "_type": 2}',
        payload_of(_type="https://in-toto.io/Statement/v0.1"),
        payload_of(subject=None),
        payload_of(subject=["student.skops"]),
        payload_of(subject=[{"name": "a", "digest": {"md5": "ab"}}]),
        payload_of(predicate=[]),
        payload_of(predicateType=None),
    ],
    ids=range(9),
)
def test_payloads_that_are_no_statement_get_one_line(signed, payload):
    """Signed by the key that is trusted, or not signed: what is in them is not believed."""
    content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    key = serialization.load_pem_private_key((signed / "owner.key").read_bytes(), None)
    made = envelope(signed) | {"payload": base64.b64encode(content).decode()}
    made["signatures"] = [{"sig": base64.b64encode(key.sign(pae(PAYLOAD_TYPE, content))).decode()}]
    (signed / "hostile.json").write_text(json.dumps(made))
    (signed / "plain.json").write_bytes(content)
    for attempt in (
        lambda: opened(signed / "hostile.json", public_key=signed / "owner.key.pub"),
        lambda: opened(signed / "hostile.json"),
        lambda: opened(signed / "plain.json"),
        lambda: sign(signed / "plain.json", key=signed / "owner.key", out=signed / "new.json"),
    ):
        with pytest.raises(InputError, match=r"JSON object|in-toto statement") as failure:
            attempt()
        assert len(str(failure.value).splitlines()) == 1
    assert not (signed / "new.json").exists()


def test_the_url_safe_alphabet_is_read_too(signed):
    """As the specification asks verifiers to do."""
    found = envelope(signed)
    for name in ("payload", "sig"):
        place = found if name == "payload" else found["signatures"][0]
        place[name] = base64.urlsafe_b64encode(base64.b64decode(place[name])).decode()
    (signed / "urlsafe.json").write_text(json.dumps(found))
    assert opened(signed / "urlsafe.json", public_key=signed / "owner.key.pub").signature == "valid"


def test_huge_files_folders_and_pipes_get_one_line(signed, here):
    with (signed / "huge.json").open("wb") as file:
        file.truncate(2**26 + 1)
    os.mkfifo(signed / "pipe")
    for name in ("huge.json", "pipe", ".", "absent.json"):
        assert_one_line_error(here(signed, "certificate", "show", name), "CERTIFICATE")
    shutil.copy(signed / "huge.json", signed / "huge.pub")
    assert_one_line_error(here(signed, "certificate", "show", "signed.json", "--public-key", "huge.pub"), "bytes")


def test_what_is_signed_is_not_signed_again_and_nothing_is_overwritten(signed):
    with pytest.raises(InputError, match="must not be signed yet"):
        sign(signed / "signed.json", key=signed / "owner.key", out=signed / "twice.json")
    before = (signed / "signed.json").read_bytes()
    with pytest.raises(InputError, match="none is overwritten"):
        sign(signed / "certificate.json", key=signed / "owner.key", out=signed / "signed.json")
    assert (signed / "signed.json").read_bytes() == before


def test_the_commands_from_key_to_card(tmp_path):
    (tmp_path / "certificate.json").write_text(json.dumps(STATEMENT), encoding="utf-8")
    (tmp_path / "secret").write_text("correct horse")
    (tmp_path / "secret").chmod(0o600)
    locked = ("--passphrase-file", "secret")
    made = run("certificate", "keygen", "owner.key", *locked, "--json", "key.json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    words = ("certificate", "sign", "certificate.json", "--key", "owner.key", "--out", "signed.json")
    assert_one_line_error(run(*words, cwd=tmp_path), "--passphrase-file must be given")
    assert run(*words, *locked, cwd=tmp_path).returncode == 0
    asked = ("signed.json", "--public-key", "owner.key.pub", "--card", "card.md", "--badge", "badge.svg")
    shown = run("certificate", "show", *asked, "--json", "shown.json", "--report", "shown.html", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "Signature: VALID." in shown.stdout
    detail = json.loads((tmp_path / "shown.json").read_text())
    assert detail["signature"] == "valid"
    assert detail["key_id"] == json.loads((tmp_path / "key.json").read_text())["key_id"]
    assert detail["claims"][0]["value"] == float.fromhex("0x1.aaaaaap-6")
    assert "Signature: VALID." in (tmp_path / "shown.html").read_text(encoding="utf-8")
    assert_one_line_error(run("certificate", "show", *asked, cwd=tmp_path), "--card must be a new file")


def test_without_the_package_one_line_says_what_to_install(tmp_path):
    (tmp_path / "cryptography.py").write_text("raise ImportError")
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    finished = run("certificate", "keygen", "owner.key", cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths})
    assert_one_line_error(finished, "pip install 'tacit-privacy[sign]'")
    (tmp_path / "certificate.json").write_text(json.dumps(STATEMENT), encoding="utf-8")
    shown = run("certificate", "show", "certificate.json", cwd=tmp_path, env=os.environ | {"PYTHONPATH": paths})
    assert shown.returncode == 0


def test_damaged_envelopes_are_one_line_or_fine_and_never_valid_for_other_bytes(signed):
    """Bytes of the envelope and of the payload are changed, lost, doubled and moved."""
    good, dice = (signed / "signed.json").read_bytes(), random.Random(0)  # noqa: S311
    content, path = (signed / "certificate.json").read_bytes(), signed / "damaged.json"
    counts, told = Counter(), set()
    for number in range(3000):
        found = bytearray(content if number % 2 else good)
        for _ in range(dice.randint(1, 3)):
            place, length = dice.randrange(len(found)), dice.randint(1, 20)
            piece = dice.choice(
                [b"", bytes([dice.randrange(256)]), b'"', b"{}", b"null", b"1e999", bytes(found[:length])]
            )
            found[place : place + dice.choice([0, 1, length])] = piece
            found = found or bytearray(b" ")
        damaged = bytes(found)
        if number % 2:  # the payload, in an envelope with the signature of the good one
            damaged = json.dumps(envelope(signed) | {"payload": base64.b64encode(damaged).decode()}).encode()
        path.write_bytes(damaged)
        for key in (None, signed / "owner.key.pub"):
            try:
                read = opened(path, public_key=key)
                if read.statement is not None:
                    contents(read.statement)
                counts[read.signature] += 1
                assert read.signature != "valid" or read.sha256 == hashlib.sha256(content).hexdigest()
            except InputError as failure:
                counts["refused"] += 1
                told.add(str(failure))
    assert all(len(message.splitlines()) == 1 and len(message) < 400 for message in told)
    assert min(counts[one] for one in ("refused", "invalid", "not checked", "valid")) > 10, counts
