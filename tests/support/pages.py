"""Reports to test with, and what stands on their pages."""

from html.parser import HTMLParser

from tacit import Adversary, Assumption, Attack, Comparison, Guarantee
from tacit.report import Report

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


def report(*comparisons, **changes):
    fields = {"command": "audit", "title": "A <title>", "summary": ("One & all.",), "comparisons": comparisons}
    return Report(**{**fields, **changes})


class Page(HTMLParser):
    """Text in reading order, all addresses, and a check that elements nest."""

    void = ("meta", "img", "br", "input")

    def __init__(self, source):
        super().__init__()
        self.text, self.addresses, self.open, self.tags = "", [], [], []
        self.feed(source)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.void:
            self.open.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        assert tag != "img" or dict(attrs)["alt"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.text += data + " "
