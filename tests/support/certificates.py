"""Keys and certificates for clusters that speak TLS."""

import socket
import subprocess


def certificate(folder, name, authority=None):
    """A key and a certificate of this machine, signed by an authority or by itself."""
    key, request, signed = (folder / f"{name}.{suffix}" for suffix in ("key", "csr", "pem"))
    openssl = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-keyout", key]
    if authority is None:
        subprocess.run([*openssl, "-x509", "-days", "2", "-out", signed], check=True, capture_output=True)
    else:
        names = f"subjectAltName=DNS:localhost,IP:127.0.0.1,IP:{_address()}"
        subprocess.run([*openssl, "-addext", names, "-out", request], check=True, capture_output=True)
        by = ["-CA", folder / f"{authority}.pem", "-CAkey", folder / f"{authority}.key", "-CAcreateserial"]
        sign = ["openssl", "x509", "-req", "-days", "2", "-copy_extensions", "copyall", "-in", request, *by]
        subprocess.run([*sign, "-out", signed], check=True, capture_output=True)
    return signed, key


def two_authorities(folder):
    """Certificates ours.pem and theirs.pem, of ours-ca.pem and theirs-ca.pem."""
    for name in ("ours", "theirs"):
        certificate(folder, f"{name}-ca")
        certificate(folder, name, f"{name}-ca")


def _address():
    """This machine's own, as Ray finds it: nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("8.8.8.8", 80))
        except OSError:  # no network at all
            return "127.0.0.1"
        return probe.getsockname()[0]
