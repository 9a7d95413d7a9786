"""The same run of `tacit bound` again, from what a certificate states: `tacit verify --replay`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any

from ...core import validate
from ...core.errors import InputError
from ...core.guarantee import Guarantee
from ...report import Report
from .options import METHODS, PER_INPUT
from .run import bound_files
from .texts import bound_texts_files

_NO_TIME = 1e-9
"""Seconds for what a run does as far as there is time: nothing that decides a claim."""


def done_by(report: Report) -> dict[str, int | None] | None:
    """Return what a run did, without the time that it took: a run that is given these numbers gives the same claims.

    Returns
    -------
    Of each method that it finished, the number of inputs that it bounded one by one, the steps of its chains, or None.
    None instead of all, if time stopped the attacks by which the run judged its prior.
    """
    counts: Mapping[str, int] = report.detail["time"]["bounded"]
    prior = report.detail["prior"] or {}
    steps = prior.get("steps")
    if steps is not None and prior["on_data"] is not None and not prior["attacked_by_chains"]["real"]:
        return None
    finished = [method for method in METHODS if method in counts or method in report.detail["finished"]]
    return {method: counts.get(method, steps if method == "bayes" else None) for method in finished}


def bound_again(files: Mapping[str, str], *, done: object, prior: str, **options: Any) -> list[Guarantee]:
    """Run `tacit bound` as a certificate says, and return the guarantees.

    Parameters
    ----------
    files
        The inputs as "replay", FILE.py:FUNCTION as "model", and where the run read them "weights", "public" and
        "generator".
    done
        What `done_by` returned.
    prior
        The prior of the method bayes, without the path of a generator.
    **options
        The other options of `bound_files`.
    """
    if not isinstance(done, Mapping) or not done or not set(done) <= set(METHODS):
        remedy = "ask the certificate's maker for the file as it was written"
        raise InputError("replay", done, requirement=f"must be of a run of {', '.join(METHODS)}", remedy=remedy)
    if "generator" in files:
        prior = f"generator:{files['generator']}"
    found = []
    for method in (name for name in METHODS if name in done):
        count = done[method]
        if count is not None or method in PER_INPUT:
            validate.whole("the count in `replay`", count, at_least=1, remedy="ask for the file as it was written")
        known: dict[str, Any] = {"public": files.get("public"), "prior": prior} if method == "bayes" else {}
        with tempfile.TemporaryDirectory() as folder:
            report = bound_files(
                files["model"],
                data=files["replay"],
                out=folder,
                weights=files.get("weights"),
                method=method,
                seconds=_NO_TIME,
                steps=count if method == "bayes" else None,
                limit=count if method in PER_INPUT else None,
                pictures=False,
                progress=False,
                **known,
                **options,
            )
        found += [comparison.guarantee for comparison in report.comparisons]
    return found


def bound_texts_again(files: Mapping[str, str], **options: Any) -> list[Guarantee]:
    """Run `tacit bound --text` as a certificate says, and return the guarantees.

    Parameters
    ----------
    files
        The texts as "replay", FILE.py:FUNCTION as "model" and, where the run called one, "attribute", and "public".
    **options
        The other options of `bound_texts_files`; `draws` and `limit` say how much time there was.
    """
    report = bound_texts_files(
        files["model"],
        text=files["replay"],
        public=files["public"],
        attribute=files.get("attribute"),
        progress=False,
        **options,
    )
    return [comparison.guarantee for comparison in report.comparisons]
