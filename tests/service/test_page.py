"""The page of the service, as people and their browsers meet it."""

import contextlib
import csv
import json
import os
import re
import signal
import threading
import time
from itertools import pairwise

import httpx
import numpy as np
import pytest
from browsing import DESKTOP, PHONE, assert_fits, browser
from hypothesis import given
from hypothesis import strategies as st

from tacit.certificate import verify
from tacit.core.errors import InputError
from tacit.learning.study import serving
from tacit.learning.study.plan import report as plan_report
from tacit.learning.study.run import learn_files
from tacit.service import forms, heads
from tacit.service.logins import MOST, SECONDS, Logins
from tacit.service.rows import Rows
from tacit.service.run import server
from tacit.service.session import open_session
from tacit.service.tokens import Tokens

__all__ = ["browser"]  # a fixture

COLOURS = ("red", "green", "blue")
EPSILON, DELTA, REFUSALS = 20.0, 1e-9, 2
"""Of the forty teachers, eight may change their votes: noise leaves that as it is, but with probability e⁻¹⁵ or so."""
CLEAR = {"x": "3", "y": "3", "colour": "red"}
"""A row on which they agree."""
ATTEMPT = "<img src=x onerror=alert(1)>\"'</textarea><script>alert(2)</script>"


def write(path, rows):
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Teachers of cats, in one corner, and dogs, in the other."""
    place, draw = tmp_path_factory.mktemp("served"), np.random.default_rng(0)

    def animals(count, *, labelled):
        for number in range(count):
            side = 1 if number % 2 else -1
            row = {name: round(3 * side + draw.normal(0, 0.5), 3) for name in "xy"}
            label = {"animal": "cat" if side > 0 else "dog"} if labelled else {}
            yield {**row, "colour": draw.choice(COLOURS), **label}

    private = write(place / "private.csv", list(animals(600, labelled=True)))
    public = write(place / "public.csv", list(animals(40, labelled=False)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        learn_files(
            private,
            label="animal",
            epsilon=1.0,
            delta=DELTA,
            budget_epsilon=1 + 2 * EPSILON,
            budget_delta=4 * DELTA,
            public=public,
            out=place / "run",
            learner="sklearn.neighbors:KNeighborsClassifier",
            settings=("n_neighbors=1",),
            student="sklearn.neighbors:KNeighborsClassifier",
            student_settings=("n_neighbors=1",),
            teachers=40,
            classes="cat,dog",
            queries="5",
        )
    return place / "run"


@pytest.fixture(scope="module")
def close(folder):
    """Rows between the corners, on which nearly as many teachers say cat as dog."""
    taught = serving.load(folder)
    rows = [{"x": f"{x / 20:g}", "y": f"{-x / 20:g}", "colour": colour} for x in range(-40, 40) for colour in COLOURS]
    counts = taught.teachers.standing().counts(
        Rows(taught.columns).numbers([(float(r["x"]), float(r["y"]), r["colour"]) for r in rows])
    )
    leads = np.abs(counts[:, 0] - counts[:, 1])
    assert np.sort(leads)[1] <= 4
    return [rows[place] for place in np.argsort(leads)[:2]]


@contextlib.contextmanager
def served(folder, **options):
    """A server in a thread: its address."""
    session = open_session(folder, epsilon=EPSILON, delta=DELTA, mechanism="svt", every=0.01, **options)
    listens, port = threading.Event(), []
    made = server(session, port=0, began=lambda found: (port.append(found), listens.set()))
    thread = threading.Thread(target=made.run)
    thread.start()
    assert listens.wait(20)
    yield f"http://127.0.0.1:{port[0]}"
    made.should_exit = True
    thread.join(20)
    assert not thread.is_alive()


@pytest.fixture(scope="module")
def tokens(folder):
    known = Tokens(folder)
    roles = {"ann": "query", "eve": "auditor", "root": "admin"}
    return {name: known.add(name, role=role) for name, role in roles.items()}


@pytest.fixture(scope="module")
def address(folder, tokens):  # noqa: ARG001 — they are made before
    with served(folder, refusals=REFUSALS) as found:
        yield found


@contextlib.contextmanager
def visit(browser, address, *, width=DESKTOP, scheme="light", scripts=True, failing=0):
    """A page in a browser of its own, which asks nobody but the service, runs no foreign script, and shows no error.

    Browsers say in the console that a page came with status 4xx; as many as are `failing` are expected.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=scripts
    )
    context.set_default_timeout(120_000)  # audits take long on a machine that does much else
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    yield page
    for _ in range(100):  # the console may be late
        if len(said) >= failing:
            break
        page.wait_for_timeout(50)
    context.close()
    assert [url for url in asked if not url.startswith((f"{address}/", "data:"))] == []
    assert sum("Failed to load resource: the server responded with a status of 4" in line for line in said) == failing
    assert len(said) == failing, said


def log_in(page, token):
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Log out").wait_for()


def send(page, button):
    """Send a form by its button, and wait for the page that follows."""
    with page.expect_navigation():
        page.get_by_role("button", name=button, exact=True).click()


def ask(page, row):
    for name, value in row.items():
        page.locator("#ask").get_by_label(name, exact=True).fill(value)
    send(page, "Ask")
    return page.locator("#ask tbody tr")


def assert_accessible(page):
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()


@contextlib.contextmanager
def client(address, token=None):
    """Requests as a browser makes them, logged in if there is a token."""
    with httpx.Client(base_url=address, timeout=60) as made:
        if token is not None:
            assert made.post("/login", data={"token": token}).status_code == 303
        yield made


@pytest.mark.parametrize(("width", "scheme", "scripts"), [(PHONE, "light", False), (DESKTOP, "dark", True)])
def test_strangers_see_what_is_proven_and_a_login(browser, address, width, scheme, scripts):
    with visit(browser, address, width=width, scheme=scheme, scripts=scripts) as page:
        assert_fits(page)
        words = page.inner_text("main").replace("\xa0", " ")
        assert "40 teachers" in words
        assert "cat, dog" in words
        assert "(ε = 20), plus δ = 1e-09" in words
        assert page.get_by_label("Token").is_visible()
        assert page.locator("section").count() == 0
        if scripts:
            assert_accessible(page)


@pytest.mark.parametrize(
    ("width", "scheme", "scripts"),
    [(PHONE, "light", True), (DESKTOP, "dark", True), (PHONE, "dark", False), (DESKTOP, "light", False)],
)
def test_the_whole_page_fits_and_is_accessible(browser, address, tokens, width, scheme, scripts):
    with visit(browser, address, width=width, scheme=scheme, scripts=scripts) as page:
        log_in(page, tokens["root"])
        page.get_by_role("button", name="Plan").click()
        page.locator("#plan-result .lead").wait_for()
        assert [part.get_attribute("id") for part in page.locator("section").all()] == [
            *("budget", "ask", "ledger", "audit", "plan")
        ]
        assert_fits(page)
        if scripts:
            assert_accessible(page)


def test_a_row_is_asked_about_by_form_and_the_budget_is_drawn(browser, folder, tokens, close):
    with served(folder, refusals=REFUSALS, session="short") as address, visit(browser, address, scripts=False) as page:
        log_in(page, tokens["ann"])
        cells = ask(page, CLEAR)
        assert "3, 3, red\tcat\tanswered\tno" in cells.inner_text()
        assert page.locator("#ask").get_by_label("colour").input_value() == "red"  # forms keep their input
        assert "3, 3, red\tcat\tanswered\tyes, at no cost" in ask(page, CLEAR).inner_text()
        assert "refused" in ask(page, close[0]).inner_text()
        assert "1 of 2 refusals left" in page.inner_text("#budget")
        points = page.locator("#budget polyline").get_attribute("points").split()
        heights = [float(point.partition(",")[2]) for point in points]
        assert sum(above > below for above, below in pairwise(heights)) == 1
        assert "1 of 2 since" in page.locator("#budget svg.steps").get_attribute("aria-label")
        assert "refused" in ask(page, close[1]).inner_text()
        assert "the session has ended" in page.inner_text("#budget").lower()
        assert "not asked: the session has ended" in ask(page, {**CLEAR, "x": "3.5"}).inner_text()
        assert "answered\tyes, at no cost" in ask(page, CLEAR).inner_text()


def test_a_quota_is_told(browser, folder, address):
    token = Tokens(folder).add("bob", quota=1)
    with visit(browser, address) as page:
        log_in(page, token)
        assert "answered" in ask(page, {**CLEAR, "x": "2.5"}).inner_text()
        assert "not asked: your quota is used up" in ask(page, {**CLEAR, "x": "2.6"}).inner_text()
        assert "1 of at most 1" in page.inner_text("#budget")


def test_a_file_of_rows_is_asked_about_and_what_it_holds_stays_text(browser, address, tokens, tmp_path):
    rows = [{**CLEAR, "colour": ATTEMPT, "other": ATTEMPT}, {"x": "-3", "y": "-3.2", "colour": "", "other": "1"}]
    with visit(browser, address) as page:
        log_in(page, tokens["ann"])
        page.get_by_label("A CSV file").set_input_files(write(tmp_path / "rows.csv", rows))
        send(page, "Ask about all rows")
        first, second = page.locator("#ask tbody tr").all()
        assert "<img src=x onerror=alert(1)>" in first.inner_text()
        assert "cat\tanswered" in first.inner_text()
        assert "dog\tanswered" in second.inner_text()
        assert page.locator("main img, main script").count() == 0
        with page.expect_download() as event:
            page.get_by_role("link", name="Answers as CSV").click()
        saved = list(csv.DictReader(event.value.path().read_text().splitlines()))
        assert [row["animal"] for row in saved] == ["cat", "dog"]


def test_wrong_input_is_one_line_and_the_form_keeps_it(browser, address, tokens, tmp_path):
    with visit(browser, address, failing=5) as page:
        log_in(page, tokens["root"])
        page.locator("#ask").get_by_label("x", exact=True).fill(ATTEMPT)
        page.locator("#ask").get_by_label("y", exact=True).fill("7")
        send(page, "Ask")
        assert page.get_by_role("alert").inner_text().startswith("X must be a number, or nothing where it is missing")
        assert page.locator("#ask").get_by_label("x", exact=True).input_value() == ATTEMPT
        assert page.locator("#ask").get_by_label("y", exact=True).input_value() == "7"
        page.get_by_label("A CSV file").set_input_files(write(tmp_path / "rows.csv", [{"x": "1", "colour": "red"}]))
        send(page, "Ask about all rows")
        assert "must name every column, got 'no y'" in page.get_by_role("alert").inner_text()
        page.goto(f"{address}/plan?records=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&queries=7#plan")
        assert "Records must be a number" in page.get_by_role("alert").inner_text()
        assert page.get_by_label("Private records").input_value() == '"><script>alert(1)</script>'
        assert page.get_by_label("Queries").input_value() == "7"
        page.goto(address)
        page.get_by_label("Queries").fill("0")
        page.get_by_label("Queries").blur()  # which asks; else the button asks again, before or after the answer
        page.get_by_role("alert").wait_for()
        with page.expect_response(lambda answer: "/plan?" in answer.url):
            page.get_by_role("button", name="Plan").click()
        page.get_by_role("alert").wait_for()
        assert "queries must" in page.get_by_role("alert").inner_text().lower()


def test_a_budget_is_dragged_and_the_plan_follows(browser, address, tokens):
    with visit(browser, address, width=PHONE) as page:
        log_in(page, tokens["ann"])
        page.get_by_label("Drag the budget").focus()
        page.keyboard.press("ArrowRight")
        page.locator("#plan-result .lead").wait_for()
        assert page.get_by_label("ε, the privacy loss").input_value() == "2.1"
        expected = plan_report(20000, 500, epsilon=2.1, delta=1e-6, error=("0.05",), classes=2)
        words = page.locator("#plan-result .lead").inner_text().replace("\xa0", " ")
        assert f"{expected.title}: {expected.verdicts[0].proven}.".replace("\xa0", " ") == words
        assert page.url == f"{address}/"
        assert_fits(page)


def test_the_keyboard_is_enough(browser, address, tokens):
    """From the first key to an answer and out again, without a mouse."""

    def tab_to(page, wanted):
        name = "document.activeElement.labels?.[0]?.innerText.trim() || document.activeElement.innerText.trim()"
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate(name) == wanted:
                assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
                return
        pytest.fail(f"no way to {wanted}")

    with visit(browser, address) as page:
        tab_to(page, "Token, from the owner of this service")
        page.keyboard.type(tokens["root"])
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Log out").wait_for()
        tab_to(page, "Ask")
        page.keyboard.press("Enter")
        for name, value in CLEAR.items():
            tab_to(page, name)
            page.keyboard.press("Control+a")
            page.keyboard.type(value)
        tab_to(page, "Ask")
        page.keyboard.press("Enter")
        page.locator("#ask tbody tr").wait_for()
        assert "cat" in page.inner_text("#ask tbody")
        for name in ("Signed head", "Audit", "Plan"):
            tab_to(page, name)
        page.keyboard.press("Enter")
        page.locator("#plan-result .lead").wait_for()
        page.reload()
        tab_to(page, "Log out")
        page.keyboard.press("Enter")
        page.get_by_label("Token").wait_for()


def test_paper_has_the_words_and_no_forms(browser, address, tokens):
    with visit(browser, address) as page:
        log_in(page, tokens["root"])
        page.emulate_media(media="print")
        assert page.locator("main input, main button, main textarea, nav").locator("visible=true").count() == 0
        for part in ("#budget svg.steps", "#ledger table", "h1"):
            assert page.locator(part).is_visible()


def test_auditors_get_the_ledger_and_a_head_that_it_holds(browser, address, folder, tokens, tmp_path):
    with visit(browser, address) as page:
        log_in(page, tokens["eve"])
        assert page.locator("#ask").count() == 0
        assert "The chain is intact" in page.inner_text("#ledger")
        assert "tacit serve, session service" in page.inner_text("#ledger")
        saved = {}
        for name, file in (("Signed head", "head.json"), ("Ledger as JSON", "ledger.json")):
            with page.expect_download() as event:
                page.get_by_role("link", name=name).click()
            event.value.save_as(tmp_path / file)
            saved[file] = json.loads((tmp_path / file).read_text())
        assert page.locator(".digest").inner_text() == saved["ledger.json"]["digest"]
    assert heads.check(tmp_path / "head.json", folder / "publish" / "ledger-head.pem.pub", saved["ledger.json"]) == 0


def test_a_table_is_audited_and_nothing_is_kept(browser, address, tokens, tmp_path):
    draw, name = np.random.default_rng(1), "<b>score</b>"
    rows = [{"secret": number % 2, name: f"level {draw.integers(3)}"} for number in range(600)]
    with visit(browser, address, width=PHONE, failing=1) as page:
        log_in(page, tokens["eve"])
        for column in ("nowhere", name):
            page.get_by_label("The table").set_input_files(write(tmp_path / "scores.csv", rows))
            page.get_by_label("Column with the secret").fill("secret")
            page.get_by_label("Column that others see").fill(column)
            send(page, "Audit")
            if column == "nowhere":
                page.get_by_role("alert").wait_for()
                assert "nowhere" in page.get_by_role("alert").inner_text()
                assert page.get_by_label("Column that others see").input_value() == "nowhere"
        page.locator("iframe").wait_for()
        assert page.locator("iframe").get_attribute("sandbox") == "allow-downloads"
        report = page.frame_locator("iframe").locator("main")
        assert f"What column '{name}'" in report.inner_text()
        assert report.evaluate("one => getComputedStyle(one.querySelector('.card')).borderTopStyle") == "solid"
        assert_fits(page)
        for link in ("Report as a file", "Certificate"):
            with page.expect_download() as event:
                page.get_by_role("link", name=link).click()
            event.value.save_as(tmp_path / link)
        assert (tmp_path / "Report as a file").read_text().startswith("<!doctype html>")
        assert [verdict for verdict, _ in verify(tmp_path / "Certificate").verdicts] == ["follows"]
        made = json.loads((tmp_path / "Certificate").read_text())["predicate"]["replay"]["options"]
        assert (made["secret"], made["output"]) == ("secret", [name])


def test_a_login_is_a_cookie_that_is_not_the_token(address, tokens):
    with client(address) as http:
        wrong = http.post("/login", data={"token": "tacit_guess<b>"})
        assert wrong.status_code == 401
        assert "The token must be one of this service" in wrong.text
        assert "guess" not in wrong.text
        right = http.post("/login", data={"token": f" {tokens['root']}\n"})
        set_cookie = right.headers["set-cookie"]
        assert re.match(r"tacit=[\w-]{43}; HttpOnly; Max-Age=28800; Path=/; SameSite=strict$", set_cookie), set_cookie
        assert tokens["root"] not in set_cookie
        kept = dict(http.cookies)
        assert "Log out" in http.get("/").text
        assert http.post("/logout").status_code == 303
        http.cookies.update(kept)
        assert "Log out" not in http.get("/").text
        behind = http.post("/login", data={"token": tokens["root"]}, headers={"X-Forwarded-Proto": "https"})
        assert re.match(r"__Host-tacit=[\w-]{43}; .*Secure", behind.headers["set-cookie"])


@pytest.mark.parametrize("path", ["/", "/plan?part=1", "/ledger", "/plan?records=x"])
def test_pages_allow_no_scripts_but_their_own(address, tokens, path):
    with client(address, tokens["root"]) as http:
        first, second = http.get(path), http.get(path)
    rules = dict(rule.partition(" ")[::2] for rule in first.headers["content-security-policy"].split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in first.headers["content-security-policy"]
    assert first.headers["referrer-policy"] == "same-origin"
    assert first.headers["cache-control"] == "no-store"
    assert first.headers["x-content-type-options"] == "nosniff"
    assert not re.search(r"\son\w+=|javascript:|style=", first.text)
    if "part" not in path:
        rule = re.compile(r"script-src 'nonce-([\w-]+)'")
        nonces = [rule.search(one.headers["content-security-policy"])[1] for one in (first, second)]
        assert nonces[0] != nonces[1]
        assert first.text.count(f'nonce="{nonces[0]}"') == 2


def test_forms_of_other_sites_are_refused(address, tokens):
    with client(address, tokens["root"]) as http:
        data = {f"column-{place}": value for place, value in enumerate(CLEAR.values())}
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            for path in ("/ask", "/login", "/logout", "/audit"):
                found = http.post(path, data=data, headers=headers)
                assert found.status_code == 403, path
                assert "A form must be sent by this page" in found.text
                assert "<tbody>" not in found.text.partition('id="ledger"')[0]
        assert "answered" in http.post("/ask", data=data, headers={"Origin": address}).text


def test_roles_open_what_they_open(address, tokens, folder):
    closed = {None: {"/plan", "/ledger", "/ledger.json", "/ledger-head.json", "/ask", "/audit"}}
    closed |= {"ann": {"/ledger", "/ledger.json", "/ledger-head.json", "/audit"}, "eve": {"/ask"}, "root": set()}
    for name, shut in closed.items():
        with client(address, None if name is None else tokens[name]) as http:
            for path in closed[None]:
                found = http.post(path, data={"x": "1"}) if path in ("/ask", "/audit") else http.get(path)
                assert (found.status_code in (401, 403)) == (path in shut), (name, path)
    token = Tokens(folder).add("gone", role="admin")
    with client(address, token) as http:
        assert "Log out" in http.get("/").text
        Tokens(folder).remove("gone")
        assert "Log out" not in http.get("/").text


def test_logins_end(folder, tokens):
    clock = [0.0]
    known = Tokens(folder)
    logins, token = Logins(known, clock=lambda: clock[0]), known.find(tokens["ann"])
    first = logins.begin(token)
    assert logins.find(first) == token
    assert logins.find("") is logins.find("guess") is None
    clock[0] = SECONDS
    assert logins.find(first) is None
    other = logins.begin(known.find(tokens["root"]))
    names = [logins.begin(token) for _ in range(MOST + 1)]
    assert logins.find(names[0]) is None
    assert logins.find(other).name == "root"
    assert logins.find(names[1]) == logins.find(names[-1]) == token
    logins.end(names[-1])
    assert logins.find(names[-1]) is None


@given(st.dictionaries(st.text("abc", min_size=1), st.binary()), st.binary())
def test_files_arrive_as_they_were_sent(files, text):
    made = httpx.Request("POST", "http://here", files={**files, "text": (None, text)} if "text" not in files else files)
    found = forms.read(made.read(), made.headers["content-type"])
    assert found.files == files
    assert found.texts["text"] == text.decode(errors="replace")


@given(
    st.binary(), st.sampled_from(["multipart/form-data; boundary=b", "application/x-www-form-urlencoded", "text/csv"])
)
def test_what_is_no_form_is_refused(content, kind):
    with contextlib.suppress(InputError):
        assert all(isinstance(value, str) for value in forms.read(content, kind).texts.values())


def test_the_demonstration_can_be_tried_at_once(browser, tmp_path, warm, monkeypatch):
    """The token that it prints opens a page with a digit in its form; and it leaves nothing behind."""
    said = [tmp_path / name for name in ("said", "warned")]
    for path in said:
        path.touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    child = warm.start(["serve", "--demo", "--port", "0"], said)
    try:
        while not (found := re.search(r"(http://[\d.:]+).*(tacit_\S+)\s", said[0].read_text(), re.DOTALL)):
            assert warm.ended(child) is None, said[1].read_text()
            time.sleep(0.02)
        assert list(tmp_path.glob("tacit-serve-*"))
        with visit(browser, found[1]) as page:
            log_in(page, found[2])
            for number in range(3):
                assert len(page.locator("textarea").input_value().split(",")) == 64
                send(page, "Ask")
                row = page.locator("#ask tbody tr")
                assert re.search(r"\d\tanswered|–\trefused", row.inner_text())
                assert row.locator("svg rect").count() > 10
                page.get_by_role("link", name="Another example").click()
                page.wait_for_url(f"**/?example={number + 1}#ask")
            assert "3 (fresh queries)" in page.inner_text("#budget")
    finally:
        os.kill(child, signal.SIGTERM)
        warm.ended(child, wait=True)
    assert "warning" not in said[1].read_text()
    assert not (tmp_path / "state").exists()
    assert not list(tmp_path.glob("tacit-serve-*"))
