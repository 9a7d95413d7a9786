"""The caller's assumptions in plain words: assumptions that ask the same of a reader stand under one line.

The full text of each assumption stays on the page, behind a fold; what is not listed here is shown as it is.
"""

from __future__ import annotations

import re

PLAIN = (
    (r"this guarantee is used for draws from the prior only", "You use this bound for draws from the prior only."),
    (
        r"the released input is one of|the (input|text) is drawn from this prior",
        "Adversaries know about the inputs what is stated here, and no more.",
    ),
    (
        r"the release is the |each record's output is released once|the table holds the output as it is released",
        "The noise is fresh, as strong as stated, and nothing is released without it.",
    ),
    (
        r"released numbers are rounded far above|the (released features are those of the model|module is released as)",
        "What you release is what was bounded: this model with these weights, its numbers rounded.",
    ),
    (
        r"the pseudo-random draws|rounding an input|the chains' positions",
        "The computer's arithmetic and random numbers behave as usual.",
    ),
    (r"the estimator is right on average", "Bounds on unbiased estimates are read as such: real attackers are biased."),
    (
        r"it is enough to compare data|neighbours differ by",
        "Hiding what differs between two such tables is the protection you want.",
    ),
    (r"the classes that were named", "The list of classes is public knowledge."),
    (r"data that differ in what is protected", "Each record reaches one teacher only."),
    (
        r"each voter, a record or a person",
        "Each record, or person, votes a limited number of times, whoever else votes.",
    ),
    (
        r"queries depend on private records|proposed labels depend on private records|the model that may propose",
        "Queries and proposed labels were made without private records.",
    ),
    (r"one session is run|one fit is made|one mechanism is run", "This is run once; another run costs again."),
    (r"nobody can foresee the noise", "Nobody can predict the noise."),
    (r"the adversary sees answers when they leave", "Adversaries see answers, not the machine that makes them."),
    (r"no process dies, and no disk fails", "Crashes do not depend on decisions that are not yet written down."),
    (r"rows are independent", "Rows are independent of one another."),
    (
        r"columns\b.* seed were chosen",
        "Columns and options were chosen before looking at the table.",
    ),
    (r"the encoder of texts or images", "The encoder was made without the private records."),
    (r"public records and the options", "Public records and options were chosen without looking at private records."),
    (r"the accuracy on the test records", "The test accuracy may be known."),
    (r"features of all records are treated as public", "Features may be public: only labels are protected."),
    (r"private records that are also among public", "Private records that are also public are not protected."),
    (
        r"the probability of the secret only grows",
        "The secret's probability only grows, or only falls, with the output.",
    ),
    (r"the secret's mean given the output", "The secret's mean changes with the output no faster than you stated."),
)
"""Beginnings of assumptions, as regular expressions, and what they ask of a reader."""

_ENDS = re.compile(r" \((?!ε)|: |; ")


def plain(text: str) -> str:
    """The assumption in plain words: those above or, for any other, its first clause."""
    for pattern, words in PLAIN:
        if re.match(pattern, text):
            return words
    first = _ENDS.split(text, maxsplit=1)[0]
    return f"{first[:1].upper()}{first[1:]}."
