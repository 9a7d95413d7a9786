"""The commands about the query service: `tacit serve`, `tacit query` and `tacit token`."""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core.errors import InputError
from .manual import BUDGET, INPUTS, SERVE, TIME, Command, Group, described
from .options import Anchor, Insecure, LedgerUrlFile, NewAnchor, Quiet, engine_of, options_named
from .printing import say
from .progress import progress

token = typer.Typer(cls=Group, help="Manage who may query a service.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder that tacit learn wrote.")]
TokenFile = Annotated[
    Path,
    typer.Option(
        "--token-file", metavar="FILE", help="A file that only you can read, with the token.", rich_help_panel=INPUTS
    ),
]
Authority = Annotated[
    Path | None,
    typer.Option(
        "--authority",
        metavar="FILE",
        help="The certificate of the service in PEM, if the system does not trust its issuer.",
        rich_help_panel=INPUTS,
    ),
]


@described(
    "tacit serve --demo",
    "tacit serve run --epsilon 1 --delta 1e-6 --refusals 20 \\\n--tls-certificate tls.pem --tls-key key.pem",
)
def serve(
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="The folder that tacit learn wrote; its teachers answer.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve teachers of bundled digits instead.", rich_help_panel=INPUTS)
    ] = False,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", help="The privacy loss ε of the whole session.", rich_help_panel=BUDGET),
    ] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", help="The δ that belongs to it.", rich_help_panel=BUDGET)
    ] = None,
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism", metavar="gate|svt", help="What decides which queries are answered.", rich_help_panel=BUDGET
        ),
    ] = "gate",
    refusals: Annotated[
        int,
        typer.Option("--refusals", help="The number of refusals after which the session ends.", rich_help_panel=BUDGET),
    ] = 20,
    session: Annotated[
        str,
        typer.Option(
            "--session",
            metavar="NAME",
            help="The name of the session; a new name begins a new session, at its own cost.",
            rich_help_panel=BUDGET,
        ),
    ] = "service",
    ledger: Annotated[
        str | None,
        typer.Option(
            "--ledger",
            metavar="WHERE",
            help="The ledger that has paid for the run; by default the one in FOLDER.",
            rich_help_panel=BUDGET,
        ),
    ] = None,
    ledger_url_file: LedgerUrlFile = None,
    anchor: Anchor = None,
    new_anchor: NewAnchor = False,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen.", rich_help_panel=SERVE)
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port; 0 takes a free one.", rich_help_panel=SERVE)] = 8710,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(
            "--tls-certificate", metavar="FILE", help="A certificate in PEM, for HTTPS.", rich_help_panel=SERVE
        ),
    ] = None,
    tls_key: Annotated[
        Path | None,
        typer.Option("--tls-key", metavar="FILE", help="Its key, which only you can read.", rich_help_panel=SERVE),
    ] = None,
    every: Annotated[
        float,
        typer.Option(
            "--every",
            metavar="SECONDS",
            help="Release answers at moments this many seconds apart.",
            rich_help_panel=SERVE,
        ),
    ] = 0.05,
    rate: Annotated[
        float,
        typer.Option(
            "--rate", help="The number of rows per second that one token may ask about.", rich_help_panel=SERVE
        ),
    ] = 1000.0,
    largest_request: Annotated[
        int,
        typer.Option("--largest-request", metavar="BYTES", help="The largest request accepted.", rich_help_panel=SERVE),
    ] = 2**20,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="WHERE",
            help="Where teachers vote: local, dask://HOST:PORT or ray://HOST:PORT.",
            rich_help_panel=TIME,
        ),
    ] = "local",
    insecure: Insecure = False,
    quiet: Quiet = False,
) -> None:
    """Answer queries over HTTP with one privacy budget, across restarts and crashes, and show a page about it."""
    options: dict[str, Any] = {
        "mechanism": mechanism,
        "refusals": refusals,
        "session": session,
        "ledger": ledger,
        "ledger_url_file": ledger_url_file,
        "anchor": anchor,
        "new_anchor": new_anchor,
        "every": every,
    }
    with options_named(serve, folder="FOLDER"), contextlib.ExitStack() as stack:
        if demo == (folder is not None):
            raise InputError(
                "folder",
                None if folder is None else str(folder),
                requirement="must be given, or else `demo`",
                remedy="name the folder that tacit learn wrote, or add `demo`",
            )
        from ..service.run import server
        from ..service.session import open_session
        from ..service.tokens import Tokens

        shown, examples = "", None
        with progress(quiet=quiet, expected=8.0) as advance:
            if folder is None:
                from ..service.demonstration import demonstration

                signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # so that its folder goes, too
                place = stack.enter_context(tempfile.TemporaryDirectory(prefix="tacit-serve-"))
                opened, examples = demonstration(Path(place), advance=advance)
                shown = Tokens(opened.served.folder).add("demo", role="admin")
            else:
                for name, value in (("epsilon", epsilon), ("delta", delta)):
                    if value is None:
                        raise InputError(
                            name, None, requirement="must be given: it is what the session costs", remedy="use about 1"
                        )
                opened = open_session(folder, epsilon=epsilon, delta=delta, advance=advance, **options)  # type: ignore[arg-type]
        scheme = "http" if tls_certificate is None else "https"

        def began(port: int) -> None:
            say(
                f"serving {opened.served.folder} at {scheme}://{host}:{port}/ ({opened.guarantee.quantity}: at most "
                f"{opened.mechanism.epsilon:g}; {opened.mechanism.refusals - opened.decisions.refused} refusals left)"
            )
            if shown:
                say(f"token for this demo: {shown}")
            elif not Tokens(opened.served.folder).all():
                say(f"nobody may ask yet; create a token with: tacit token add {folder} NAME")

        server(
            opened,
            host=host,
            port=port,
            tls_certificate=tls_certificate,
            tls_key=tls_key,
            insecure=insecure,
            engine=engine_of(engine, insecure=insecure),
            rate=rate,
            largest_request=largest_request,
            examples=examples,
            began=(lambda _: None) if quiet and not shown else began,
        ).run()


@described(
    "tacit query https://example.org:8710 rows.csv \\\n--token-file token.txt --out answered.csv",
    "tacit query https://example.org:8710 --token-file token.txt \\\n--head head.json --public-key ledger-head.pem.pub",
)
def query(
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of the service.")],
    table: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A CSV or Parquet file of rows to ask about.")
    ] = None,
    token_file: TokenFile = ...,  # type: ignore[assignment]
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The table with the answers, a file of the same kind.")
    ] = None,
    head: Annotated[
        Path | None,
        typer.Option(
            "--head",
            metavar="FILE",
            help="For auditors: check that the ledger continues the head kept here, and keep the latest.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    public_key: Annotated[
        Path | None,
        typer.Option(
            "--public-key",
            metavar="FILE",
            help="The owner's public key for heads, from a place you trust.",
            rich_help_panel=INPUTS,
        ),
    ] = None,
    authority: Authority = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure", help="Allow HTTP to another machine: the token can be read.", rich_help_panel=INPUTS
        ),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Ask a service about the rows of a file, or check that its ledger was not rolled back."""
    with options_named(query, url="URL", table="FILE"):
        from ..service.client import Client, query_file, read_token

        if (table is None) == (head is None):
            raise InputError(
                "table",
                None if table is None else str(table),
                requirement="must be given, or else `head`",
                remedy="name a file of rows, or the head to check",
            )
        if head is not None:
            if public_key is None:
                raise InputError("public_key", None, requirement="must come with `head`", remedy="name the owner's key")
            with Client(url, read_token(token_file), authority=authority, insecure=insecure) as client:
                since = client.check_head(head, public_key)
            say(f"the ledger continues the head in {head}, with {since} links since; the latest head is kept there")
            return
        if out is None:
            raise InputError("out", None, requirement="must be given", remedy="name the file to write")
        with progress(quiet=quiet) as advance:
            options: dict[str, Any] = {"authority": authority, "insecure": insecure, "advance": advance}
            found = query_file(url, str(table), token_file=token_file, out=out, **options)
        if not quiet:
            left = found["budget"]
            say(
                f"{found['rows']} rows: {found['answered']} answered, {found['refused']} refused, "
                f"{found['spent']} after the session's end, {found['quota']} beyond your quota; {found['recorded']} "
                f"had been decided before; {left['refusals_left']} refusals left; written: {out}"
            )


@token.callback()
@described("tacit token add run ann --quota 1000", "tacit token list run")
def _token() -> None:
    """Let the group have examples."""


@token.command("add", cls=Command)
@described("tacit token add run ann --quota 1000", "tacit token add run eve --role auditor")
def add(
    folder: Folder,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Who gets the token; the ledger shows the name beside each query.")
    ],
    role: Annotated[
        str,
        typer.Option("--role", metavar="query|auditor|admin", help="What the token allows.", rich_help_panel=SERVE),
    ] = "query",
    quota: Annotated[
        int | None,
        typer.Option("--quota", help="The number of new queries it may ask, in total.", rich_help_panel=SERVE),
    ] = None,
) -> None:
    """Make a token, and print it once. Only its digest is stored."""
    with options_named(add, folder="FOLDER", name="NAME"):
        say(_tokens(folder).add(name, role=role, quota=quota))


@token.command("list", cls=Command)
@described("tacit token list run", "tacit token list other/run")
def listed(folder: Folder) -> None:
    """List names, roles and quotas."""
    with options_named(listed, folder="FOLDER"):
        for one in _tokens(folder).all():
            quota = "no quota" if one.quota is None else f"{one.quota} fresh queries"
            say(f"{one.name}  {one.role}  {quota}  since {one.created}")


@token.command("remove", cls=Command)
@described("tacit token remove run ann", "tacit token remove run eve")
def remove(
    folder: Folder, name: Annotated[str, typer.Argument(metavar="NAME", help="Whose token is revoked.")]
) -> None:
    """Revoke a token; a running service notices at once."""
    with options_named(remove, folder="FOLDER", name="NAME"):
        _tokens(folder).remove(name)


def _tokens(folder: Path) -> Any:
    from ..service.tokens import Tokens

    if not (folder / "private").is_dir():
        raise InputError(
            "folder", str(folder), requirement="must be one that tacit learn wrote", remedy="check its name"
        )
    return Tokens(folder)
