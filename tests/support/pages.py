"""Reports to test with, and what stands on their pages."""

import re
from html.parser import HTMLParser

from tacit import Adversary, Assumption, Attack, Comparison, Guarantee
from tacit.report import Report, Verdict

CALLER = Assumption(text="records are <i.i.d.> & fresh", checked_by="caller")
CODE = Assumption(text="sigma is positive", checked_by="code")


def comparison(*, value=0.5, attacked=0.4, side="at_most", adversary=Adversary.ANY):
    guarantee = Guarantee(
        quantity="advantage",
        side=side,
        value=value,
        adversary=adversary,
        theorem="Theorem B",
        assumptions=(CODE, CALLER),
        failure_probability=0.01,
    )
    attack = attacked and Attack(
        quantity="advantage",
        value=attacked,
        low=attacked - 0.01,
        high=attacked + 0.01,
        failure_probability=0.01,
        adversary=adversary,
        method="threshold",
    )
    return Comparison(guarantee=guarantee, attacks=[attack] if attack else [])


VERDICT = Verdict(level="weak", about="Telling", proven="at most 0.5", reached="0.4", reason="It is not ruled out.")


def report(*comparisons, **changes):
    fields = {"command": "audit", "title": "A <title>", "summary": ("One & all.",), "comparisons": comparisons}
    return Report(**{**fields, **changes})


def unfolded_words(source):
    """How many words a page shows while all of its folds are closed, and its slider stands where it begins."""
    shown = source.replace("<wbr>", "")  # within a word
    shown = re.sub(r"<(style|script|head)\b.*?</\1>", " ", shown, flags=re.DOTALL)
    shown = re.sub(r'<div class="step"[^>]* hidden>.*?</div>', " ", shown, flags=re.DOTALL)
    shown = re.sub(r'<p class="on-paper">.*?</p>', " ", shown, flags=re.DOTALL)
    words, folds, heading = 0, 0, False
    for part in re.split(r"(<[^>]+>)", shown):
        if part.startswith("<"):
            folds += part.startswith("<details") - part.startswith("</details")
            heading = part.startswith("<summary") or (heading and not part.startswith("</summary"))
        elif folds == 0 or (folds == 1 and heading):
            words += len(part.split())
    return words


class Page(HTMLParser):
    """Text in reading order, all addresses, and a check that elements nest."""

    void = ("meta", "img", "br", "input", "wbr")

    def __init__(self, source):
        super().__init__()
        self.text, self.addresses, self.open, self.tags = "", [], [], []
        self.feed(source)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "wbr":  # within a word
            self.text = self.text.removesuffix(" ")
        if tag not in self.void:
            self.open.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        assert tag != "img" or dict(attrs)["alt"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text += data + " "
