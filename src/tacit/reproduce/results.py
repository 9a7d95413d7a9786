"""Results as files for a documentation folder: JSON, Markdown, and figures as SVG."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.encoding import decoded
from ..core.errors import InputError
from ..core.wording import safe_text
from ..report import Report
from ..runtime.files import write_whole

_NO_BREAK = "\u00a0"

_COLUMNS = {
    "network": "",
    "images": "evaluated; in brackets those of the published search, if fewer",
    "σ": "of the Gaussian noise",
    "accuracy": "percent, without → with noise, ± at most the standard error; in brackets the published numbers",
    "published search": "median standard deviation of unbiased estimates per mode, at the two perturbation sizes",
    "multi-point": "the same by the multi-point bound; in brackets for float64 features, where all other columns are "
    "for float32, in which the networks compute",
    "prior": "standard deviation of the images themselves",
    "named": "upper bound on the probability of naming the released image; in brackets what an attack reached",
    "remains": "least share of the variance that remains, whoever rebuilds an image drawn from a Gaussian fitted to "
    "other images (its covariance or, at ImageNet's size, its power per frequency and colour); in brackets what the "
    "best attack leaves",
    "rebuilt": "mean squared error of a decoder on images it never saw, as a share of their variance",
}


def write_results(report: Report, folder: Path, *, name: str, heading: str, first: str = "") -> None:
    """Write results.json, the figures NAME-….svg, section.md, and results.md, which is `first` and the section."""
    write_whole(folder / "results.json", report.to_json().encode())
    for suffix, figure in zip(report.detail["figures"], report.pictures, strict=True):
        write_whole(folder / f"{name}-{suffix}.svg", figure.svg.encode())
    section = _section(report, name, heading)
    write_whole(folder / "results.md", f"{first}{section}".encode())
    write_whole(folder / "section.md", section.encode())


def gather(folders: Sequence[Path], page: Path, *, title: str) -> Path:
    """Make one page from the sections of several runs, with their figures beside it.

    Parameters
    ----------
    folders
        Output folders of finished runs.
    page
        The Markdown file to write.
    title
        Its heading.
    """
    page.parent.mkdir(parents=True, exist_ok=True)
    write_whole(page, "\n".join([f"# {title}\n", *(_gathered(folder, page.parent) for folder in folders)]).encode())
    return page


def _gathered(folder: Path, destination: Path) -> str:
    """Copy the figures of a run, and return its section."""
    try:
        section = (folder / "section.md").read_text()
    except OSError:
        raise InputError(
            "folder", str(folder), requirement="must be that of a finished run", remedy="finish the run with --resume"
        ) from None
    for figure in sorted(folder.glob("*.svg")):
        shutil.copyfile(figure, destination / figure.name)
    return section


def collect(folders: Sequence[Path], destination: Path) -> Path:
    """Make DESTINATION/index.md, one page with one table, from several runs of `tacit reproduce hcr`.

    Their figures are copied there. The page begins with links to the other pages in that folder.

    Parameters
    ----------
    folders
        Output folders of finished runs.
    destination
        The folder to write to.
    """
    destination.mkdir(parents=True, exist_ok=True)
    sections = [_gathered(folder, destination) for folder in folders]
    rows = [decoded(json.loads((folder / "results.json").read_text()))["detail"]["row"] for folder in folders]
    page = destination / "index.md"
    write_whole(page, "\n".join(["# Results\n", other_pages(destination), table(rows), *sections]).encode())
    return page


def other_pages(folder: Path) -> str:
    """Return links to the other pages of a folder, by their titles."""
    titles = {page.name: page.read_text().partition("\n")[0] for page in sorted(folder.glob("*.md"))}
    links = [f"[{title.removeprefix('# ')}]({name})" for name, title in titles.items() if name != "index.md"]
    return f"Other results: {'; '.join(links)}.\n" if links else ""


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of several reports as one Markdown table, with a line about each column."""
    lines = [f"| {' | '.join(_COLUMNS)} |", f"|{'---|' * len(_COLUMNS)}"]
    lines += [f"| {' | '.join(_cells(row))} |" for row in rows]
    lines += ["", *(f"- *{name}*: {meaning}" for name, meaning in _COLUMNS.items() if meaning)]
    return "\n".join(lines) + "\n"


def _cells(row: Mapping[str, Any]) -> list[str]:
    searched = "" if row["search_images"] in (0, row["images"]) else f" ({row['search_images']})"
    accuracy = [f"{_percent(row['accuracy'])} → {_percent(row['dithered'])}", f"± {_percent(row['accuracy_error'])}"]
    if row["published_accuracy"] is not None:
        accuracy.append(f"({_percent(row['published_accuracy'])} → {_percent(row['published_dithered'])})")
    sizes = [size for size in row["median"] if "/" in size]
    named = safe_text(row["naming_limit"], toward="up")
    return [
        row["net"],
        f"{row['images']}{searched}",
        f"{row['sigma']:.3g}",
        _lines(accuracy),
        _lines([f"{safe_text(row['median'][size], toward='down', digits=2)} at {size}" for size in sizes]) or "not run",
        " ".join(
            shown.format(safe_text(row["median"][name], toward="down", digits=2))
            for name, shown in (("multi-point", "{}"), ("multi-point, float64", "({})"))
        ),
        f"{row['prior_std']:.2g}",
        f"{named} ({row['naming_attack']:.3g})",
        ""
        if row["remaining"] is None
        else f"{safe_text(row['remaining'], toward='down', digits=2)} ({row['remaining_attack']:.2g})",
        "" if row["decoder"] is None else f"{row['decoder']:.2g}",
    ]


def _lines(parts: Sequence[str]) -> str:
    """Join parts of a cell so that lines break only between parts."""
    return " ".join(part.replace(" ", _NO_BREAK) for part in parts)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _section(report: Report, name: str, heading: str) -> str:
    lines = [f"## {heading}", "", *(f"{sentence}\n" for sentence in report.summary)]
    for shown in report.tables:
        lines += [f"| {' | '.join(shown.columns)} |", f"|{'---|' * len(shown.columns)}"]
        lines += [f"| {' | '.join(row)} |" for row in shown.rows]
        lines += ["", shown.note, ""]
    for suffix, figure in zip(report.detail["figures"], report.pictures, strict=True):
        lines += [f"**{figure.title}.** {figure.caption}", "", f"![{figure.alternative}]({name}-{suffix}.svg)", ""]
    return "\n".join(lines)
