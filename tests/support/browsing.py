"""Pages in headless Chromium: phone and desktop, light and dark, with and without scripts, and on paper."""

import importlib.util
import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

PHONE, DESKTOP = 360, 1280
WAYS = [
    pytest.param(width, scheme, scripts, id=f"{width}-{scheme}-{'scripts' if scripts else 'no scripts'}")
    for width in (PHONE, DESKTOP)
    for scheme in ("light", "dark")
    for scripts in (True, False)
]


def missing():
    """What a browser test lacks, or nothing."""
    if shutil.which("chromium") is None:
        return "no chromium on the path: apt-get install chromium"
    if importlib.util.find_spec("playwright") is None or importlib.util.find_spec("axe_playwright_python") is None:
        return "no playwright or axe: make .venv/test"
    return None


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium. Where it is missing tests are skipped, and in CI they fail."""
    lacking = missing()
    if lacking is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(lacking)
        pytest.skip(lacking)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield opened
        opened.close()


@contextmanager
def opened(browser, path, *, width=DESKTOP, scheme="light", scripts=True):
    """The page of a file, without a network; whatever its console says is an error."""
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme=scheme, java_script_enabled=scripts, offline=True
    )
    said = []
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda request: said.append(f"not loaded: {request.url[:80]}"))
    page.goto(Path(path).resolve().as_uri())
    yield page
    context.close()
    assert not said


def unscripted(path):
    """A copy of a page without its script, for axe, which is a script itself."""
    copy = Path(path).with_name("unscripted.html")
    copy.write_text(re.sub(r"<script>.*?</script>", "", Path(path).read_text(encoding="utf-8"), flags=re.DOTALL))
    return copy


def assert_fits(page):
    """Nothing is wider than the page, but for tables, which scroll by themselves; pictures are there."""
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    wide = """() => [...document.querySelectorAll("main *")]
      .filter(one => !one.closest(".table") && one.getBoundingClientRect().right > innerWidth + 0.5)
      .map(one => one.outerHTML.slice(0, 80))"""
    assert page.evaluate(wide) == []
    broken = "() => [...document.images].filter(one => one.complete && !one.naturalWidth).length"
    assert page.evaluate(broken) == 0


def assert_no_violations(page):
    """axe finds nothing wrong on a page that is open, and whose scripts run."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page)
    assert not found.response["violations"], found.generate_report()


def assert_accessible(browser, path, *, width, scheme, scripts):
    """axe finds nothing wrong."""
    with opened(browser, path if scripts else unscripted(path), width=width, scheme=scheme) as page:
        assert_no_violations(page)
