"""What is made of a certificate for readers: text, a model card and a badge, whatever a stranger wrote into it."""

import copy
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt
from test_signatures import STATEMENT

from tacit import InputError
from tacit.certificate.badge import badge
from tacit.certificate.card import model_card
from tacit.certificate.claims import contents
from tacit.certificate.showing import show
from tacit.certificate.signatures import Opened

EVIL = 'x\n---\n# <script>alert(1)</script> [a](http://b.c) `|` "\\ & ![i](j) \x1b[31m \u202e &lt; www.a.b'


def found(signature="none"):
    return Opened(signature=signature, key_id="key" * 5, sha256="cd" * 32, statement=STATEMENT)


def altered(change):
    statement = copy.deepcopy(STATEMENT)
    change(statement["predicate"], statement)
    return statement


def parsed(svg):
    return ElementTree.fromstring(svg)  # noqa: S314 — drawn here


def split(card):
    _, front, section = card.split("---\n", 2)
    return yaml.safe_load(front), section


def test_a_card_has_metadata_and_a_section():
    front, section = split(model_card(found("valid"), contents(STATEMENT), name="signed.json"))
    assert front["tags"] == ["privacy", "tacit"]
    (claim,) = front["privacy_certificate"]["claims"]
    assert claim["value"] == float.fromhex("0x1.aaaaaap-6")
    assert claim["failure_probability"] == 0.05
    assert front["privacy_certificate"]["subjects"] == [{"name": "student.skops", "sha256": "ab" * 32}]
    assert "**at most 0.0261, except with probability 0.05**" in section
    assert "assumed, left to the owner to check: rows are independent" in section
    assert "was valid when this section was made" in section
    for state, words in (("none", "is not signed"), ("not checked", "nobody checked the signature")):
        front, section = split(model_card(found(state), contents(STATEMENT), name="signed.json"))
        assert words in section
        assert front["privacy_certificate"]["signature"] == state


def test_a_certificate_that_names_no_file_says_so(tmp_path):
    nobody = altered(lambda _, statement: statement.update(subject=[]))
    front, section = split(model_card(found(), contents(nobody), name="a.json"))
    assert front["privacy_certificate"]["subjects"] == []
    assert "It names no file, so nothing in it ties it to this model." in section
    (tmp_path / "a.json").write_text(json.dumps(nobody), encoding="utf-8")
    assert "About no file" in show(tmp_path / "a.json").to_text()


def test_numbers_are_rounded_to_the_safe_side_and_read_as_numbers():
    def claimed(side, value, failure):
        def change(predicate, _):
            claim = predicate["claims"][0]
            claim["claimed"] = {"side": side, "value": value}
            claim["failure_probability"] = failure

        return contents(altered(change)).claims[0]

    assert claimed("at most", (0.12301).hex(), None).bound == "at most 0.124"
    assert claimed("at least", (0.12399).hex(), "1/1000").bound == "at least 0.123, except with probability 0.001"
    assert claimed("at most", None, None).bound == "nothing"
    assert claimed("at most", "3/4", 0).short == "at most 0.75"
    for value in (1e-7, 1e22, 3.0):
        statement = altered(
            lambda predicate, _, value=value: predicate["claims"][0]["claimed"].update(value=value.hex())
        )
        front, _ = split(model_card(found(), contents(statement), name="a.json"))
        assert front["privacy_certificate"]["claims"][0]["value"] == value


def evil(predicate, statement):
    predicate["title"] = predicate["command"] = predicate["made_by"]["tacit"] = EVIL
    predicate["claims"][0]["statement"] = predicate["claims"][0]["assumptions"][0]["text"] = EVIL
    predicate["not_revealed"] = [EVIL, "- a list", "1. another"]
    statement["subject"] = [{"name": EVIL, "digest": {"sha256": EVIL}}]


def test_a_card_shows_hostile_text_and_obeys_none_of_it():
    card = model_card(found("valid"), contents(altered(evil)), name="`|\n---.json")
    front, section = split(card)
    assert set(front) == {"tags", "privacy_certificate"}
    assert "alert(1)" in front["privacy_certificate"]["claims"][0]["statement"]
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").parse(section)
    inline = [one for block in rendered for one in block.children or ()]
    kinds = {one.type for one in (*rendered, *inline)}
    assert not kinds & {"html_inline", "html_block", "link_open", "image", "hr", "fence", "code_block"}
    assert [one.tag for one in rendered if one.type == "heading_open"] == ["h2"]
    assert [one.type for one in rendered].count("list_item_open") == 1 + 1 + 3  # claim, assumption, not revealed
    assert [one.type for one in rendered].count("td_open") == 2
    texts = [one.content for one in inline if one.type == "text"]
    assert any("<script>alert(1)</script> [a](http://b.c)" in text for text in texts)  # shown as it is
    *_, code = [one.content for one in inline if one.type == "code_inline"]
    for live in ("<", "\x1b", "\u202e", " www.a"):
        assert live not in section.replace(f"`{code}`", ""), live


def test_a_badge_is_an_svg_that_says_what_is_claimed():
    for state, words in (("valid", "signed"), ("not checked", "signature not checked"), ("none", "unsigned")):
        drawn = parsed(badge(found(state), contents(STATEMENT)))
        texts = [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
        assert texts == ["tacit audit", f"at most 0.0261 · {words}"]
        (title,) = drawn.iter("{http://www.w3.org/2000/svg}title")
        assert STATEMENT["predicate"]["claims"][0]["statement"] in title.text
        assert drawn.get("aria-label") == title.text
    several = altered(lambda predicate, _: predicate["claims"].append(predicate["claims"][0]))
    assert "at most 0.0261 (1 of 2) · unsigned" in badge(found(), contents(several))


def test_a_badge_holds_hostile_text_as_text():
    drawn = badge(found(), contents(altered(evil)))
    elements = {one.tag.partition("}")[2] for one in parsed(drawn).iter()}
    assert elements == {"svg", "title", "clipPath", "rect", "g", "text"}
    assert "<script" not in drawn
    assert int(parsed(drawn).get("width")) < 1000


@pytest.mark.parametrize(
    "change",
    [
        lambda predicate, _: predicate.pop("claims"),
        lambda predicate, _: predicate.update(claims=[7]),
        lambda predicate, _: predicate.update(claims={"a": 1}),
        lambda predicate, _: predicate.update(title=None),
        lambda predicate, _: predicate.update(made_by="me"),
        lambda predicate, _: predicate["claims"][0].update(claimed={"side": "about", "value": "0x1p0"}),
        lambda predicate, _: predicate["claims"][0]["claimed"].update(value="inf"),
        lambda predicate, _: predicate["claims"][0]["claimed"].update(value="0x1p99999"),
        lambda predicate, _: predicate["claims"][0]["claimed"].update(value=0.1),
        lambda predicate, _: predicate["claims"][0]["claimed"].update(value=True),
        lambda predicate, _: predicate["claims"][0].update(failure_probability="1e999999999"),
        lambda predicate, _: predicate["claims"][0].update(failure_probability="1/0"),
        lambda predicate, _: predicate["claims"][0].update(failure_probability="-1"),
        lambda predicate, _: predicate["claims"][0].update(failure_probability=2),
        lambda predicate, _: predicate["claims"][0]["assumptions"][0].update(checked_by=[]),
        lambda predicate, _: predicate["claims"][0].update(assumptions=None),
    ],
    ids=range(16),
)
def test_predicates_that_are_not_what_they_say_get_one_line(change):
    with pytest.raises(InputError, match="must have the fields of urn:tacit-privacy:certificate:v1") as failure:
        contents(altered(change))
    assert len(str(failure.value).splitlines()) == 1


def test_a_statement_of_another_kind_is_shown_without_claims(tmp_path):
    other = altered(lambda _, statement: statement.update(predicateType="https://slsa.dev/provenance/v1"))
    (tmp_path / "other.json").write_text(json.dumps(other), encoding="utf-8")
    told = show(tmp_path / "other.json")
    assert "https://slsa.dev/provenance/v1; it has no claims that Tacit can read" in told.to_text().replace(
        "\n   ", " "
    )
    assert told.met
    with pytest.raises(InputError, match="for a card or a badge"):
        show(tmp_path / "other.json", badge=tmp_path / "badge.svg")
    assert not (tmp_path / "badge.svg").exists()


def test_control_characters_do_not_reach_the_terminal_or_the_page(tmp_path):
    (tmp_path / "evil.json").write_text(json.dumps(altered(evil)), encoding="utf-8")
    command = [sys.executable, "-m", "tacit", "certificate", "show", "evil.json", "--report", "page.html"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "\x1b" not in finished.stdout
    assert "\u202e" not in finished.stdout
    page = Path(tmp_path, "page.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
