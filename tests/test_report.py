import dataclasses
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from pages import VERDICT, Page, comparison, report, unfolded_words

from tacit import Comparison, InputError
from tacit.report import Change, Chapter, Figure, Slider, Step, Table, figures
from tacit.report.checks import PLAIN, plain
from tacit.report.timing import Paced, Timed
from tacit.report.wording import duration, percent, percent_down, percent_up


def page(source):
    parsed = Page(source)
    parsed.text = " ".join(parsed.text.split())
    return parsed


def test_html_says_what_must_be_said_in_the_right_order():
    text = page(report(comparison()).to_html()).text
    order = [
        "One & all.",
        "only you can check that",
        "Records are <i.i.d.> & fresh",
        "Advantage",
        "at most 0.5",
        "except with probability 0.01",
        "For anyone, by any method",
        "Not contradicted",
        "You check",
        "Tacit checked",
        "sigma is positive",
        "An attack that fails shows only that this attack failed.",
    ]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)


def test_text_says_what_must_be_said_in_the_right_order():
    lines = report(comparison()).to_text().splitlines()
    text = " ".join(" ".join(lines).split())
    order = ["One & all.", "Only you can check that", "records are", "1. Advantage", "at most 0.5", "An attack that"]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)
    assert max(len(line) for line in lines) <= 80


@pytest.mark.parametrize("attacked", [0.4, None])
def test_a_report_says_once_what_failed_attacks_show_if_there_were_any(attacked):
    made = report(comparison(attacked=attacked), comparison(attacked=attacked))
    for text in (page(made.to_html()).text, " ".join(made.to_text().split())):
        assert text.count("An attack that fails shows only that this attack failed.") == bool(attacked)
    assert not made.contradicted


def test_a_contradiction_is_shouted_and_not_softened():
    made = report(comparison(attacked=0.9))
    assert made.contradicted
    for text in (page(made.to_html()).text, made.to_text()):
        assert "CONTRADICTED" in text
    assert "An attack that fails" not in made.to_text()


def test_an_infinite_bound_is_put_into_words():
    impossible = report(comparison(value=float("inf"), side="at_least", attacked=None))
    vacuous = report(comparison(value=float("inf")))
    for text in (page(impossible.to_html()).text, impossible.to_text()):
        assert "no adversary of this class exists" in text
        assert "∞" not in text
    assert "the guarantee is vacuous here" in vacuous.to_text()


def test_an_attack_that_passes_the_bound_within_its_uncertainty_is_said_to():
    text = " ".join(report(comparison(attacked=0.505)).to_text().split())
    assert "passed the bound by 0.0050, within its uncertainty" in text


def test_json_follows_schema_2():
    made = report(comparison(), comparison(attacked=None), detail={"rows": 5, "loss": float("nan")})
    data = json.loads(made.to_json())
    assert list(data) == ["schema", "command", "comparisons", "detail"]
    assert (data["schema"], data["command"]) == (2, "audit")
    assert data["detail"] == {"rows": 5, "loss": {"$float": "nan"}}
    assert [Comparison.from_dict(item) for item in data["comparisons"]] == list(made.comparisons)
    assert data["comparisons"][1]["attacks"] == []


def test_the_page_needs_nothing_but_itself():
    picture = Figure(title="T", caption="C", alternative="A", svg=figures.image_rows({"row": [[[0, 1], [1, 0]]]}))
    source = report(comparison(), figures=[picture]).to_html()
    parsed = page(source)
    assert parsed.addresses
    assert all(address.startswith("data:") for address in parsed.addresses)
    assert not {"script", "link", "iframe"} & set(parsed.tags)
    assert "@import" not in source
    assert "url(" not in source
    assert "prefers-color-scheme: dark" in source
    assert "@media print" in source
    assert 'name="viewport"' in source


def test_the_same_picture_is_drawn_once_and_another_one_is_another():
    asked = [{"one": [[[0, shade]]]} for shade in (0.25, 0.5, 0.25)]
    first, other, again = (figures.image_rows(rows) for rows in asked)
    assert again is first
    assert other != first
    for number in range(figures._KEPT):
        figures.image_rows({f"{number}": []} | {"one": [[[number]]]})
    anew = figures.image_rows(asked[0])  # forgotten meanwhile, and the same all the same
    assert anew is not first
    assert anew == first


def test_images_of_one_row_stand_beside_one_another_and_keep_their_shape():
    svg = figures.image_rows({"above": [np.zeros((4, 8)), np.ones((8, 4, 3))], "below": [np.zeros((4, 8))]})
    places = [
        {name: float(value) for name, value in re.findall(r' (x|y|width|height)="([-\d.]+)"', tag)}
        for tag in re.findall(r"<image [^>]*>", svg)
    ]
    wide, tall, below = places
    assert wide["width"] == pytest.approx(2 * wide["height"], rel=0.05)
    assert tall["height"] == pytest.approx(2 * tall["width"], rel=0.05)
    assert wide["x"] + wide["width"] < tall["x"]
    assert wide["x"] == below["x"]
    assert below["y"] + below["height"] <= wide["y"]  # matplotlib turns the axis upside down


def test_histograms_write_few_plain_numbers_over_a_short_axis():
    written = re.findall(r"<!-- ([\d.]+) -->", figures.histogram({"a": np.array([0.03, 0.05, 0.17])}, x_label="x"))
    assert {"0.05", "0.1"} <= set(written)
    assert not {"0.04", "0.06"} & set(written)


def test_every_line_of_a_comparison_is_drawn_and_no_two_alike():
    names = [f"mechanism {place}" for place in range(15)]
    values = {name: [0.1, 0.2 + place / 100] for place, name in enumerate(names)}
    drawn = figures.comparison([1.0, 2.0], values, x_label="x", y_label="y")
    assert set(names) <= set(re.findall(r"<!-- (.+?) -->", drawn))
    with pytest.raises(ValueError, match="shorter"):
        figures.comparison([1.0, 2.0], {**values, "one more": [0.1, 0.2]}, x_label="x", y_label="y")
    assert len(figures._STYLES) == len({marker for *_, marker in figures._STYLES}) == 15


def test_figures_are_xml_in_the_colours_of_both_schemes_and_the_same_every_time():
    options = {"x_label": "noise", "y_label": "share", "marked": (1.0, "here")}
    one = figures.curves([0.5, 1, 2], {"bound": ([0.9, 0.5, 0.1], figures.PROVEN)}, **options)
    assert one == figures.curves([0.5, 1, 2], {"bound": ([0.9, 0.5, 0.1], figures.PROVEN)}, **options)
    ElementTree.fromstring(one)  # noqa: S314 — our own text
    assert "var(--proven)" in one
    assert "prefers-color-scheme: dark" in one
    lines = figures.intervals({"low to high": (0.1, 0.3)}, x_label="advantage", marked=(0.2, "allowed: 0.2"))
    ElementTree.fromstring(lines)  # noqa: S314 — our own text
    assert "low to high" in lines
    for placeholder in (figures.INK, figures.MUTED, figures.GRID, figures.PROVEN, figures.ACHIEVED, figures.USEFUL):
        assert placeholder not in one


@pytest.mark.parametrize(
    ("side", "value", "attacked"), [("at_most", 0.3, 0.2), ("at_least", 0.1, 0.2), ("at_least", -3.0, 0.0001)]
)
def test_the_number_line_shows_bound_and_attack_inside_its_frame(side, value, attacked):
    from tacit.report.document import number_line

    line = number_line(comparison(side=side, value=value, attacked=attacked))
    assert 0 <= line["bound"] <= 100
    (mark,) = line["attacks"]
    assert 0 <= mark["low"] <= mark["value"] <= mark["high"] <= 100
    start, width = line["ruled_out"]
    assert (start, start + width) == ((0, line["bound"]) if side == "at_least" else (line["bound"], 100))


def test_a_table_is_shown_in_text_and_on_the_page():
    table = Table(title="T & t", columns=("name", "x"), rows=(("<a>", "1"), ("b", "22")), note="In votes.")
    made = report(comparison(), tables=[table])
    assert "name   x\n--------\n<a>    1\nb     22\nIn votes." in made.to_text()
    page = Page(made.to_html())
    assert page.tags.count("tr") == 3
    assert "<a>" in page.text


def test_a_table_too_wide_even_so_comes_in_parts():
    rows = tuple((name * 20, "1", "2") for name in "abcde")
    table = Table(title="T", columns=("name", "x" * 30, "y" * 30), rows=rows, note="n")
    lines = table.to_lines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[1:] for line in lines if line.startswith("name")] == [
        ["a" * 20, "b" * 20],
        ["c" * 20, "d" * 20],
        ["e" * 20],
    ]
    assert sum(line.startswith("y" * 30) for line in lines) == 3


def test_a_wide_table_is_turned_on_its_side():
    columns = ("name", *(f"a long column {i}" for i in range(6)))
    table = Table(title="T", columns=columns, rows=(("a", *"123456"), ("b", *"789012")), note="n")
    assert table.to_lines()[1:5] == [
        "name             a  b",
        "---------------------",
        "a long column 0  1  7",
        "a long column 1  2  8",
    ]


def chapter(title="One part", **changes):
    fields = {
        "title": title,
        "released": "Features <with noise>.",
        "nobody": "Nobody names the image.",
        "attacker": "An attack came close.",
        "change": "Add noise.",
        "verdict": VERDICT,
        "comparisons": (comparison(),),
    }
    return Chapter(**{**fields, **changes})


def slider(**changes):
    steps = [
        Step(
            name=name,
            values=(value,),
            reading=f"With {name}.",
            pictures=(("Grey.", figures.image_rows({"x": [[[0]]]})),),
        )
        for name, value in (("little", "9 %"), ("much", "1 %"))
    ]
    fields = {"title": "How much", "caption": "In shares.", "columns": ("noise", "named"), "steps": tuple(steps)}
    return Slider(**{**fields, "chosen": 1, **changes})


def test_chapters_answer_four_questions_in_order_and_number_their_guarantees_through():
    made = report(chapters=(chapter(), chapter("Another", comparisons=(comparison(), comparison(attacked=None)))))
    assert len(made.comparisons) == 3
    order = ["Part 1: One part", "What is released", "Features <with noise>.", "What nobody can learn"]
    order += ["What an attacker got", "What to change", "Add noise.", "Part 2: Another"]
    parsed = page(made.to_html())
    assert parsed.tags.count("article") == 3
    assert "script" not in parsed.tags
    for text in (parsed.text, " ".join(made.to_text().split())):
        positions = [text.index(part) for part in order]
        assert positions == sorted(positions)
    assert "3. Advantage" in parsed.text[parsed.text.index("Part 2: Another") :]
    assert parsed.text.index("Part 2: Another") < parsed.text.index("only you can check that")


def test_a_slider_shows_its_chosen_step_and_a_table_of_all():
    made = report(chapters=(chapter(sliders=(slider(),)),))
    source = made.to_html()
    parsed = page(source)
    assert parsed.tags.count("script") == 1
    assert all(address.startswith(("data:", "#")) for address in parsed.addresses)
    assert source.count('data-name="little" hidden') == 1
    assert source.count('data-name="much">') == 1
    assert "little    9 %\nmuch      1 %\nIn shares." in made.to_text()


@pytest.mark.parametrize(
    "refused",
    [
        lambda: slider(chosen=2),
        lambda: slider(chosen=-1),
        lambda: chapter(comparisons=()),
        lambda: chapter(change=""),
        lambda: report(chapters=("a part",)),
    ],
)
def test_what_a_page_could_not_show_is_refused(refused):
    with pytest.raises(InputError):
        refused()


def test_a_bound_that_is_a_round_number_leaves_room_for_what_it_rules_out():
    from tacit.report.document import number_line

    assert number_line(comparison(value=2.0))["ruled_out"][1] > 20


def several():
    """One guarantee, three attacks on it."""
    (first,) = comparison().attacks
    others = [dataclasses.replace(first, value=v, low=v - 0.01, high=v + 0.01, method=f"to {v}") for v in (0.1, 0.45)]
    return Comparison(guarantee=comparison().guarantee, attacks=[first, *others])


def test_a_guarantee_is_shown_once_and_its_attacks_beneath_it():
    made = report(several())
    text, page = made.to_text(), Page(made.to_html())
    assert text.count("   proven     ") == 1
    assert text.count("   attack     ") == 3
    assert "the nearest of 3 attacks stayed 0.050 from the bound" in text.replace("\n" + 14 * " ", " ")
    assert page.tags.count("article") == 1
    for attack in several().attacks:
        assert f"{attack.method}: " in page.text
        assert attack.value_text in page.text
    assert made.to_html().count('class="point"') == made.to_html().count('class="interval"') == 3
    assert len(json.loads(made.to_json())["comparisons"][0]["attacks"]) == 3


def test_how_many_attacks_contradict_is_said():
    (first,) = comparison(attacked=0.8).attacks
    broken = dataclasses.replace(several(), attacks=[*several().attacks, first])
    assert "CONTRADICTED: 1 of 4 attacks did" in report(broken).to_text().replace("\n" + 14 * " ", " ")
    assert report(broken).contradicted


def test_a_report_has_one_shape():
    """Verdict, picture, what to change with its price, what only the reader can check, guarantees, JSON."""
    drawn = Figure(
        title="The picture", caption="C", alternative="A", svg=figures.image_rows({"row": [[[0, 1], [1, 0]]]})
    )
    change = Change(what="Add noise.", price="accuracy.", command="tacit bound --noise gaussian:2")
    made = report(comparison(), verdicts=[VERDICT], opening=[drawn], changes=[change])
    text = page(made.to_html()).text
    order = ["! Weak Telling", "The picture", "What to change, and what it costs", "Add noise.", "Price: accuracy."]
    order += ["tacit bound --noise", "only you can check that", "What is proven", "1. Advantage", "All numbers as JSON"]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)
    said = " ".join(made.to_text().split())
    assert "WEAK Telling: at most 0.5; an attack reached 0.4. It is not ruled out." in said
    assert said.index("Price: accuracy.") < said.index("Only you can check that")
    data = json.loads(made.to_json())
    assert list(data) == ["schema", "command", "comparisons", "detail", "verdicts", "changes"]
    assert data["verdicts"][0]["level"] == "weak"


@pytest.mark.parametrize("refused", [{"level": "good"}, {"about": ""}, {"reason": ""}])
def test_a_verdict_is_fine_weak_or_broken_and_says_why(refused):
    with pytest.raises(InputError):
        dataclasses.replace(VERDICT, **refused)
    for level, mark in (("fine", "✓"), ("weak", "!"), ("broken", "✕")):
        text = page(report(comparison(), verdicts=[dataclasses.replace(VERDICT, level=level)]).to_html()).text
        assert f"{mark} {level.capitalize()} Telling" in text  # never colour alone


def test_assumptions_that_ask_the_same_stand_under_one_line_and_none_is_lost():
    texts = [
        "the pseudo-random draws of the computation behave as independent",
        "rounding an input to float64 moves its features by no more than their stated error",
        "something new (with 1e-13 in it)",
    ]
    assumed = [dataclasses.replace(comparison().guarantee.assumptions[1], text=text) for text in texts]
    guarantee = dataclasses.replace(comparison().guarantee, assumptions=tuple(assumed))
    made = report(Comparison(guarantee=guarantee), verdicts=[VERDICT])
    assert [words for words, _ in made.checks] == [plain(texts[0]), "Something new."]
    source = made.to_html()
    for text in texts:
        assert text[1:] in page(source).text
    folded = re.sub(r"</summary>.*?</details>", "", source, flags=re.DOTALL)
    assert "1e-13" not in folded
    assert unfolded_words(source) < len(page(source).text.split())


def test_every_plain_line_stands_for_an_assumption_that_the_library_states():
    from pathlib import Path

    import tacit

    root = Path(tacit.__file__).parent
    sources = " ".join(path.read_text() for path in root.rglob("*.py") if path.name != "checks.py")
    sources = re.sub(r'"\s*\n\s*f?"', "", sources)
    for pattern, _ in PLAIN:
        assert re.search(pattern, sources), pattern


def test_what_an_audit_assumes_is_said_in_plain_words():
    from tacit import certify

    for options in ({}, {"noise": 1.0}, {"noise_added": 1.0}, {"method": "monotone"}):
        found = certify([0, 1] * 50, [0.1, 0.9] * 50, **options).guarantee
        for text in found.assumed(checked_by="caller"):
            assert any(re.match(pattern, text) for pattern, _ in PLAIN), text


def test_a_share_has_one_unit_and_a_line_from_0_to_1():
    from tacit.report.document import number_line

    found = comparison()
    named = "probability of naming the released input"
    attacks = [dataclasses.replace(attack, quantity=named) for attack in found.attacks]
    shares = Comparison(guarantee=dataclasses.replace(found.guarantee, quantity=named), attacks=attacks)
    made = report(shares)
    for text in (made.to_text(), page(made.to_html()).text):
        assert "at most 50 %" in text
        assert "40 % (39 % to 41 %" in text
        assert "0.4" not in text
        assert "at most 0.5" not in text
    assert number_line(shares)["ends"] == ("0 %", "100 %")
    assert number_line(comparison(value=0.03, attacked=0.02))["ends"] == ("0", "1")


def test_an_interval_that_crosses_into_what_is_ruled_out_is_explained():
    words = "An interval that reaches into what is ruled out is no contradiction"
    assert words in page(report(comparison(attacked=0.495)).to_html()).text
    assert words not in page(report(comparison(attacked=0.4)).to_html()).text
    assert words not in page(report(comparison(attacked=0.9)).to_html()).text


def test_shares_and_times_are_rounded_to_the_true_side():
    assert (percent(0.5749), percent_up(0.571), percent_down(0.579), percent_up(0.9991)) == (
        *("57 %", "58 %", "57 %", "100 %"),
    )
    times = {0.2: "1 second", 75: "75 seconds", 120: "2 minutes", 3000: "50 minutes", 7200: "2 hours"}
    assert {seconds: duration(seconds) for seconds in times} == times


def test_lines_say_the_time_that_is_left_once_it_was_estimated():
    lines, now = [], [0.0]
    timed = Timed(lines.append, clock=lambda: now[0])
    timed("reading")
    timed.expect(5)  # too little to be worth a line
    timed("trying")
    now[0] = 10.0
    timed.expect(40, remedy="fewer teachers take less")
    for now[0], line in ((25.0, "training"), (50.5, "3 of 90 teachers trained"), (51.0, "writing")):
        timed(line)
    assert lines == [
        *("reading", "trying", "this takes about 50 seconds; fewer teachers take less"),
        "50 % done, about 25 seconds left: training",
        "3 % done, longer than expected: 3 of 90 teachers trained",
        "99 % done, longer than expected: writing",
    ]


def test_lines_of_steps_are_corrected_by_how_long_earlier_ones_took():
    lines, now = [], [0.0]
    paced = Paced(lines.append, [10, 30], remedy="fewer take less", clock=lambda: now[0])
    paced("first")
    now[0] = 22.0
    paced.within("first", 0.5)
    paced("second")
    Paced(lines.append, [4, 4], clock=lambda: now[0])("too short for a word on time")
    resumed = Paced(lines.append, [0, 3600, 3600], resumed=True, clock=lambda: now[0])
    resumed("reading")
    resumed("the first")
    assert lines == [
        "this takes about 40 seconds; fewer take less",
        "0 % done, about 40 seconds left: first",
        "12 % done, about 2 minutes left: first",
        "25 % done, about 60 seconds left: second",
        "too short for a word on time",
        "reading",
        "this takes about 2 hours at most",
        "0 % done, about 2 hours left: the first",
    ]


def test_no_line_of_a_page_ends_between_a_number_and_its_unit():
    made = report(comparison(), summary=("At most 57 % with ε = 2, δ = 1e-09 of 100 records.",))
    assert "At most 57\N{NO-BREAK SPACE}% with ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}2, δ" in made.to_html()
    assert "At most 57 % with ε = 2" in made.to_text()


def test_no_line_ends_inside_a_small_number_nor_a_page_turns_dark_on_paper():
    source = report(comparison(), summary=("Plus δ = 1e-06; and <more>.",)).to_html()
    assert '<span class="whole">1e-06;</span> and &lt;more&gt;.' in source
    assert source.count("prefers-color-scheme: dark") == source.count("@media screen and (prefers-color-scheme: dark)")
