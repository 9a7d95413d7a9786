"""The commands of `tacit certificate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .delivery import delivery
from .manual import INPUTS, Command, Group, described
from .options import JsonPath, Quiet, ReportPath, options_named

certificate = typer.Typer(
    cls=Group,
    help="Sign certificates, and show what they claim and who signed them.",
    no_args_is_help=True,
)

CertificatePath = Annotated[
    Path, typer.Argument(metavar="CERTIFICATE", help="A file that --certificate wrote, signed or not.")
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        metavar="FILE",
        help="A file that only you can read, with the private key's passphrase.",
        rich_help_panel=INPUTS,
    ),
]


@certificate.callback()
@described("tacit certificate keygen owner.key", "tacit certificate show signed.json --public-key owner.key.pub")
def _certificate() -> None:
    """Let the group have examples."""


@certificate.command(cls=Command)
@described("tacit certificate keygen owner.key", "tacit certificate keygen owner.key --passphrase-file passphrase.txt")
def keygen(
    key: Annotated[
        Path, typer.Argument(metavar="KEY", help="A new file for the private key; KEY.pub gets the public key.")
    ],
    passphrase_file: PassphraseFile = None,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Make an Ed25519 key pair. No file is overwritten."""
    with delivery(json, report, quiet=quiet, inputs=(key, f"{key}.pub", passphrase_file)) as deliver:
        from ..certificate.showing import keygen as made

        with options_named(keygen, key="KEY"):
            deliver(made(key, passphrase_file=passphrase_file))


@certificate.command(cls=Command)
@described(
    "tacit certificate sign audit.json --key owner.key --out signed.json",
    "tacit certificate sign audit.json --key owner.key \\\n--passphrase-file passphrase.txt --out signed.json",
)
def sign(
    certificate: CertificatePath,
    key: Annotated[
        Path,
        typer.Option("--key", metavar="FILE", help="The private key, which only you can read.", rich_help_panel=INPUTS),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="A new file for the signed certificate.")],
    passphrase_file: PassphraseFile = None,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Sign a certificate: wrap it into a DSSE envelope."""
    with delivery(json, report, quiet=quiet, inputs=(certificate, key, out, passphrase_file)) as deliver:
        from ..certificate.showing import signing

        with options_named(sign, certificate="CERTIFICATE"):
            deliver(signing(certificate, key=key, out=out, passphrase_file=passphrase_file))


@certificate.command(cls=Command)
@described(
    "tacit certificate show signed.json --public-key owner.key.pub",
    "tacit certificate show signed.json --public-key owner.key.pub \\\n--card card.md --badge badge.svg",
)
def show(
    certificate: CertificatePath,
    public_key: Annotated[
        Path | None,
        typer.Option(
            "--public-key",
            metavar="FILE",
            help="The signer's public key, from a place that you trust: exit with 1 unless it signed.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    card: Annotated[
        Path | None,
        typer.Option("--card", metavar="FILE", help="Write the section of a Hugging Face model card; a new file."),
    ] = None,
    badge: Annotated[
        Path | None, typer.Option("--badge", metavar="FILE", help="Write a badge as an SVG; a new file.")
    ] = None,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Show what a certificate claims, and whether its signature is valid."""
    with delivery(json, report, quiet=quiet, inputs=(certificate, public_key, card, badge)) as deliver:
        from ..certificate.showing import show as shown

        with options_named(show, certificate="CERTIFICATE"):
            deliver(shown(certificate, public_key=public_key, card=card, badge=badge))
