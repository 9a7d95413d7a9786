"""Reports as browsers show them."""

import dataclasses
import json

import pytest
from browsing import PHONE, WAYS, assert_accessible, assert_fits, assert_no_violations, browser, opened
from pages import VERDICT, comparison, report

from tacit import Comparison
from tacit.report import Chapter, Figure, Slider, Step, Table, figures, proofs

__all__ = ["browser"]  # a fixture


def picture(number):
    return figures.image_rows({f"row {number}": [[[0, number / 3], [1, 0]]]})


def slider():
    steps = tuple(
        Step(name=f"{number}", values=(f"{10 * number} %",), reading=f"At {number} all is well.", pictures=pictures)
        for number in range(4)
        for pictures in [((f"A picture of {number}.", picture(number)), ("Another.", picture(0)))]
    )
    return Slider(title="A choice", caption="In percent.", columns=("noise", "share"), steps=steps, chosen=2)


def several():
    """One guarantee that names its theorems, and several attacks on it."""
    names = ["Theorem B", "theory.certificates.squared_sharp", "theory.leakage.advantage_upper"]
    guarantee = dataclasses.replace(comparison().guarantee, theorem=names)
    return Comparison(guarantee=guarantee, attacks=[comparison(attacked=v).attacks[0] for v in (0.1, 0.2, 0.45)])


def chapter(**changes):
    fields = {
        "title": "A part",
        "released": "Numbers.",
        "nobody": "Nobody.",
        "attacker": "Somebody.",
        "change": "Everything.",
        "verdict": VERDICT,
        "comparisons": (comparison(), comparison(attacked=None, side="at_least"), several()),
        "sliders": (slider(),),
        "figures": tuple(Figure(title=f"T{n}", caption="C", alternative="A", svg=picture(n)) for n in range(3)),
        "tables": (Table(title="Wide", columns=tuple("abcdefgh"), rows=(("a name of some length",) * 8,), note="N"),),
    }
    return Chapter(**{**fields, **changes})


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    parts = (chapter(opening=chapter().figures[:1]), chapter(title="Another part"))
    made = report(chapters=parts, detail={"answer": 42})
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(made.to_html(), encoding="utf-8")
    return file


@pytest.mark.parametrize(("width", "scheme", "scripts"), WAYS)
def test_a_page_fits_and_is_accessible(browser, path, width, scheme, scripts):
    with opened(browser, path, width=width, scheme=scheme, scripts=scripts) as page:
        assert_fits(page)
        shown = page.locator(".slider").first
        assert shown.locator(".step:visible").count() == 1
        assert "At 2 all is well." in shown.inner_text()
        assert shown.locator("tbody tr").count() == 4
        assert not shown.locator("tbody").is_visible()
        shown.locator("summary").click()
        assert shown.locator("tbody").is_visible()
        assert shown.locator("input").is_visible() == scripts
    assert_accessible(browser, path, width=width, scheme=scheme, scripts=scripts)


def test_the_slider_changes_what_is_shown(browser, path):
    with opened(browser, path, width=PHONE) as page:
        one, other = page.locator(".slider").all()
        one.locator("input").focus()
        page.keyboard.press("ArrowRight")
        assert one.locator(".step:visible p").inner_text() == "At 3 all is well."
        assert one.locator("tr.current th").text_content() == "3"
        assert one.locator("output").inner_text() == "3"
        assert one.locator("input").get_attribute("aria-valuetext") == "At 3 all is well."
        assert one.locator(".step:visible img").first.get_attribute("alt") == "A picture of 3."
        assert other.locator(".step:visible p").inner_text() == "At 2 all is well."


@pytest.mark.parametrize("scripts", [True, False])
def test_everything_can_be_downloaded_as_json(browser, path, scripts):
    with opened(browser, path, scripts=scripts) as page:
        with page.expect_download() as download:
            page.get_by_role("link", name="All numbers as JSON").click()
        assert download.value.suggested_filename == "tacit-audit.json"
        data = json.loads(download.value.path().read_text())
        assert data["detail"] == {"answer": 42}
        assert len(data["comparisons"]) == 6


def test_paper_shows_the_step_chosen_and_no_knob(browser, path):
    with opened(browser, path) as page:
        page.emulate_media(media="print")
        assert not page.locator(".knob").first.is_visible()
        assert page.locator(".slider").first.locator(".step:visible").count() == 1
        assert not page.locator(".actions").is_visible()
        for words in (".check p", ".on-paper", "article h3"):  # what only the reader can check is printed in full
            assert page.locator(words).first.is_visible()
        assert not page.locator(".theorem").first.is_visible()
        assert page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.parametrize(("width", "scheme", "scripts"), WAYS)
def test_two_clicks_show_a_proof(browser, path, width, scheme, scripts):
    with opened(browser, path, width=width, scheme=scheme, scripts=scripts) as page:
        page.locator(".fold", has=page.locator("article")).locator("summary").first.click()
        page.locator("article a", has_text="squared_sharp").first.click()
        assert page.url.endswith("#proof-squared_sharp")
        theorem = page.locator("details:target")
        assert not theorem.get_by_text("Assumptions.").is_visible()
        theorem.locator("summary").click()
        assert theorem.get_by_text("Assumptions.").is_visible()
        assert "tacit proof squared_sharp" in theorem.inner_text()
        assert "∎" in theorem.inner_text()
        assert_fits(page)


@pytest.mark.parametrize("names", [(), ("roc_upper", "squared_sharp"), ("gate",)], ids=["all", "two", "a page"])
@pytest.mark.parametrize(("width", "scheme", "scripts"), WAYS[::3])
def test_pages_of_proofs_fit_and_are_accessible(browser, tmp_path, names, width, scheme, scripts):
    file = tmp_path / "proof.html"
    file.write_text(proofs(names).to_html(), encoding="utf-8")
    with opened(browser, file, width=width, scheme=scheme, scripts=scripts) as page:
        assert_fits(page)
        if scripts:  # a long page, which is laid out once
            assert_no_violations(page)
            return
    assert_accessible(browser, file, width=width, scheme=scheme, scripts=scripts)
