"""`tacit verify`, and the commands of `tacit certificate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import InputError
from ..core.guarantee import Guarantee
from .delivery import delivery
from .manual import INPUTS, PROVE, REPLAY, Command, Group, described
from .options import NOTHING, JsonPath, Quiet, ReportPath, options_named, read_by_bound

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
        typer.Option("--card", metavar="FILE", help="Write a section for a Hugging Face model card to a new file."),
    ] = None,
    badge: Annotated[
        Path | None, typer.Option("--badge", metavar="FILE", help="Write a badge as SVG to a new file.")
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


@described(
    "tacit verify certificate.json --subject student.skops",
    "tacit verify certificate.json --opening certificate.json.opening \\\n--replay scores.csv",
)
def verify(
    certificate: CertificatePath,
    opening: Annotated[
        Path | None,
        typer.Option(
            "--opening", metavar="FILE", help="What opens the certificate's commitments.", rich_help_panel=INPUTS
        ),
    ] = None,
    subject: Annotated[
        list[Path] | None,
        typer.Option(
            "--subject",
            metavar="FILE",
            help="A released file to compare with the certificate, by its SHA-256; repeatable.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="PATH",
            help="The table of an audit, or the inputs or texts of bound: run it again.",
            rich_help_panel=REPLAY,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="FILE.py:FUNCTION",
            help="With --replay: the model of bound. The file is run.",
            rich_help_panel=REPLAY,
        ),
    ] = None,
    weights: Annotated[Path | None, read_by_bound("--weights", panel=REPLAY, meaning="The model's weights.")] = None,
    public: Annotated[Path | None, read_by_bound("--public", panel=REPLAY, meaning="The public inputs.")] = None,
    generator: Annotated[
        Path | None, read_by_bound("--generator", panel=REPLAY, meaning="The file of the prior generator:FILE.")
    ] = None,
    attribute: Annotated[
        str | None,
        read_by_bound(
            "--attribute", panel=REPLAY, meaning="The function that finds the attribute in texts. The file is run."
        ),
    ] = None,
    all_claims: Annotated[
        bool,
        typer.Option("--all", help="Also fail if a claim cannot be checked.", rich_help_panel=PROVE),
    ] = False,
    json: JsonPath = None,
    report: ReportPath = None,
    quiet: Quiet = False,
) -> None:
    """Check a certificate from somebody else: does each number follow, and is it about these files?"""
    given = {"replay": replay, "model": model, "weights": weights, "public": public}
    given |= {"generator": generator, "attribute": attribute}
    files = {name: path for name, path in given.items() if path is not None}
    if files and replay is None:
        raise InputError(
            f"--{next(iter(files))}", NOTHING, requirement="must come with --replay", remedy="give the inputs, too"
        )
    code = [each.rpartition(":")[0] or None for each in (model, attribute) if each is not None]
    read = (certificate, opening, replay, weights, public, generator, *code, *(subject or ()))
    with delivery(json, report, quiet=quiet, inputs=read) as deliver:
        from ..certificate import verify as verified

        def again(command: str, files: Mapping[str, str], options: Mapping[str, Any]) -> Sequence[Guarantee]:
            if command == "audit":
                from ..audit import audit_file

                if any(str(one).lower().endswith(".npy") for one in options["output"]):
                    raise InputError(
                        "replay",
                        "a certificate that names another file",
                        requirement="must be of a run that read the table alone",
                        remedy="leave it out",
                    )
                found = audit_file(Path(files["replay"]), attack_rows=0, pictures=False, **options)
                return [comparison.guarantee for comparison in found.comparisons]
            from ..reconstruction.study.again import bound_again, bound_texts_again

            return (bound_again if command == "bound" else bound_texts_again)(files, **options)

        with options_named(verify, certificate="CERTIFICATE"):
            found = verified(
                certificate, opening=opening, subjects=subject or (), replay=files, rerun=again, all_claims=all_claims
            )
        deliver(found)
