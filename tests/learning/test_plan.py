"""`tacit plan` as people run it: the table, the page, the JSON, and one-line refusals."""

import json
import re

import pytest
from commands import assert_one_line_error
from pages import Page, unfolded_words

from tacit import InputError
from tacit.core.wording import text_above
from tacit.learning.study.plan import report

SMALL = ("plan", "--records", "60000", "--queries", "1000", "--epsilon", "2", "--delta", "1e-5")


@pytest.fixture(scope="module")
def written(tmp_path_factory, warm):
    folder = tmp_path_factory.mktemp("plan")
    options = ("--error", "0.05", "--classes", "10", "--json", "p.json", "--report", "p.html")
    finished = warm.run(folder, *SMALL, *options)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout, json.loads((folder / "p.json").read_text()), (folder / "p.html").read_text()


def test_the_table_fits_a_terminal(written):
    text, _, _ = written
    assert max(len(line) for line in text.splitlines()) <= 80
    assert re.search(r"^mechanism +svt-faithful +svt +svt-adaptive +stable +gnmax$", text, flags=re.M)
    assert re.search(r"^right, at least +– +825 +– +– +824$", text, flags=re.M)
    assert re.search(r"^verdict +hopeless +feasible +no promise +no promise +feasible$", text, flags=re.M)
    assert re.search(r"^mechanism +gnmax-winners +gate +confident-gnmax$", text, flags=re.M)
    assert "An estimate, no promise: about" in " ".join(text.split())
    assert "No private data is used for a plan." in " ".join(text.split())


def test_it_begins_with_the_best_promise_and_its_condition(written):
    cards, said = (" ".join(part.split()) for part in written[0].split("\n\n")[1:3])
    assert cards.startswith("FINE What the budget buys: at least 82 % right answers.")
    assert said.startswith(
        "The best promise is that of svt: 2533 teachers with 23 records each answer at least 825 of 1000 queries "
        "correctly, except with probability 0.05, if they are as assumed (tacit proof hard_queries "
        "tolerated_votes open_threshold_distance stable_teachers). By default, tacit learn takes "
    )


def test_the_json_holds_the_plan(written):
    _, data, _ = written
    rows = data["detail"]["plan"]["rows"]
    assert [row["teachers"] for row in rows if row["feasible"]] == [2533, 1723, 1813]
    (comparison,) = data["comparisons"]
    assert comparison["guarantee"]["value"] == 2.0
    assert max(comparison["guarantee"]["detail"]["delta_spent"].values()) <= 1e-5
    assert "except svt-adaptive, gnmax-winners, gate (proven when run)" in comparison["guarantee"]["quantity"]


def test_the_page_has_the_table_and_all_pictures(written):
    _, _, source = written
    page = Page(source)
    assert page.tags.count("table") == 1
    assert unfolded_words(source) <= 900
    assert page.tags.count("img") == 4
    assert "Teachers that a promise needs" in page.text
    assert "Expected right answers" in page.text
    assert "Right answers, by the number of teachers" in page.text
    assert "Right answers, by ε" in page.text


def test_a_hopeless_plan_is_an_answer(tmp_path, here):
    few = ("--records", "100", "--queries", "50", "--epsilon", "0.1", "--delta", "1e-5")
    finished = here(tmp_path, "plan", *few)
    assert finished.returncode == 0
    assert "No mechanism can promise right answers with this budget." in finished.stdout


def test_a_learning_curve_on_the_command_line(tmp_path, here):
    curve = ("--error", "240:0.03", "--error", "60:0.08")
    finished = here(tmp_path, *SMALL[:-4], "--epsilon", "8", "--delta", "1e-5", *curve)
    assert finished.returncode == 0
    assert "as the given learning curve says" in " ".join(finished.stdout.split())


@pytest.mark.parametrize(
    "inputs",
    [{"vc_dimension": 3}, {"vc_dimension": 3, "best_error": 0.1, "teachers": 20}, {}, {"public_model_error": 0.1}],
)
def test_every_kind_of_learner_makes_a_page(inputs):
    made = report(10**8, 100, epsilon=1.0, delta=1e-6, **inputs)
    Page(made.to_html())
    assert max(len(line) for line in made.to_text().splitlines()) <= 80
    assert len(made.opening) == 2
    assert made.verdicts[0].level in ("fine", "weak", "broken")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--error", "nonsense"),
        ("--error", "0.1", "--error", "0.2"),
        ("--error", "1:2:3"),
        ("--error", "7"),
        ("--error", "nan"),
        ("--error", "0.1", "--vc-dimension", "3"),
        ("--classes", "1"),
        ("--teachers", "0"),
        ("--failure-probability", "1"),
        ("--public-model-error", "1"),
    ],
)
def test_bad_plans_are_one_line(arguments, tmp_path, here):
    assert_one_line_error(here(tmp_path, *SMALL, *arguments))


def test_faithful_constants_that_spend_too_much_are_not_claimed():
    """At a large ε the printed constants need not be private; the guarantee then leaves them out."""
    made = report(10**6, 1000, epsilon=60.0, delta=1e-2, error=("0.3",))
    guarantee = made.comparisons[0].guarantee
    spent = {row["mechanism"]: row["delta_spent"] for row in made.detail["plan"]["rows"]}
    assert all(value <= 1e-2 for value in guarantee.detail["delta_spent"].values())
    assert ("svt-faithful" in guarantee.quantity) == (spent["svt-faithful"] > 1e-2)


def test_an_error_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="must be one ERROR, or RECORDS:ERROR"):
        report(100, 10, epsilon=1.0, delta=1e-5, error=("a:b",))


def test_the_old_name_of_the_failure_probability_still_works(tmp_path, here):
    old = here(tmp_path, *SMALL, "--error", "0.05", "--beta", "0.01")
    new = here(tmp_path, *SMALL, "--error", "0.05", "--failure-probability", "0.01")
    assert (old.returncode, old.stdout) == (new.returncode, new.stdout)
    assert old.stderr == "tacit: --beta will be removed; use --failure-probability\n"
    assert new.stderr == ""
    assert "--beta" not in here(tmp_path, "plan", "--help").stdout


@pytest.mark.parametrize(("delta", "level"), [(1e-5, "fine"), (0.01, "weak"), (0.9, "broken")])
def test_a_large_delta_is_no_promise(delta, level):
    card = report(1_000, 20, error=["0.05"], epsilon=0.1, delta=delta).verdicts[1]
    assert (card.level, card.proven) == (level, f"ε at most 0.1, δ {text_above(delta)}")
