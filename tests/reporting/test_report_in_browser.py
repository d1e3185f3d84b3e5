"""A report on real runs in Chromium: by mouse, by keyboard, on a phone, on paper, without scripts."""

import os
import shutil

import pytest

from tests.reporting.reports import HOSTILE, write_report

CHROMIUM = shutil.which("chromium")
MUST_RUN = bool(os.environ.get("CI"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None and not MUST_RUN, reason="Chromium is not installed (package chromium)"),
]
CONTROLS = "a[href], button, summary, video, [tabindex='0']"
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
DRAWN = "html[data-drawn]"


@pytest.fixture(scope="module")
def address(runs, tmp_path_factory):
    """The address of a report on all runs, with videos."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, runs, video=True)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    """Chromium, once for all tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM or "chromium")
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, address):
    """A function: the page in a new context without network, and what has come to its console since."""
    contexts = []

    def open_context(**options):
        context = browser.new_context(offline=True, **{"viewport": DESKTOP, **options})
        context.set_default_timeout(180_000)  # ms: a first page on a machine that does other work
        contexts.append(context)
        page, said = context.new_page(), []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.goto(address)
        if options.get("java_script_enabled", True):
            page.wait_for_selector(DRAWN)
        return page, said

    yield open_context
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def page(browser, address):
    """The page on a desktop, shared by tests that leave it as it was."""
    page = browser.new_page(viewport=DESKTOP)
    page.goto(address)
    page.wait_for_selector(DRAWN)
    return page


def measure(page, expression):
    return page.evaluate(f"() => {expression}")


def test_it_opens_from_disk_draws_every_chart_and_the_console_stays_empty(open_page):
    page, said = open_page()
    assert page.locator(".chart svg").count() == page.locator(".chart").count() > 30
    assert said == []


def test_hovering_shows_the_value_of_a_run(page):
    chart = page.locator("figure", has_text="Learning in CartPole-v1").locator("svg.marks").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#hover:not([hidden])")
    shown = page.locator("#hover").inner_text()
    assert "env steps of training" in shown and "method" in shown
    page.keyboard.press("Escape")
    assert page.locator("#hover").is_hidden()


def test_the_keyboard_reaches_every_control(open_page):
    page, _ = open_page()
    number = measure(
        page,
        f"""[...document.querySelectorAll("{CONTROLS}")].filter((each) => each.checkVisibility()).map(
            (each, number) => each.dataset.number = number).length""",
    )
    reached = set()
    for _ in range(number * 8):  # a video has several controls of its own
        page.keyboard.press("Tab")
        reached.add(measure(page, "document.activeElement.dataset.number"))
        if len(reached - {None}) == number:
            break
    assert len(reached - {None}) == number > 100


def test_the_keyboard_zooms_moves_and_opens_tables(page):
    figure = page.locator("figure", has_text="Learning in CartPole-v1").first
    name = figure.locator(".chart").get_attribute("id")

    def read_domain():
        return measure(page, f"views['{name}'].scale('x').domain()")

    def press(label):
        figure.get_by_role("button", name=label).press("Enter")
        page.wait_for_timeout(200)
        return read_domain()

    low, high = read_domain()
    quarter = (high - low) / 4
    assert press("Zoom in") == pytest.approx([low + quarter, high - quarter])
    assert press("Right") == pytest.approx([low + 1.5 * quarter, high - quarter / 2])
    assert press("Show all") == pytest.approx([low, high])
    figure.locator("summary").press("Enter")
    assert figure.locator("table").is_visible()
    figure.locator("summary").press("Enter")


def test_dragging_moves_and_the_wheel_zooms_only_with_the_key(page):
    figure = page.locator("figure", has_text="Learning in CartPole-v1").first
    name, chart = figure.locator(".chart").get_attribute("id"), figure.locator("svg.marks")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def read_domain():
        page.wait_for_timeout(200)
        return measure(page, f"views['{name}'].scale('x').domain()")

    before = read_domain()
    page.mouse.move(x, y)
    page.mouse.wheel(0, 1)
    assert read_domain() == before
    page.keyboard.down("Control")
    page.mouse.wheel(0, -200)
    page.keyboard.up("Control")
    low, high = read_domain()
    assert high - low < before[1] - before[0]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=5)
    page.mouse.up()
    moved = read_domain()
    assert moved[0] < low and moved[1] - moved[0] == pytest.approx(high - low)
    page.mouse.dblclick(x, y)
    assert read_domain() == pytest.approx(before)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_light_and_dark(open_page, scheme):
    page, said = open_page(viewport=PHONE, color_scheme=scheme, has_touch=True)
    assert measure(page, "document.documentElement.scrollWidth") == PHONE["width"]
    assert measure(page, "[...document.querySelectorAll('svg.marks')].every((each) => each.clientWidth < 390)")
    ground, ink = (measure(page, f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color"))
    brightness = [sum(map(int, text.removeprefix("rgb(").rstrip(")").split(","))) / 765 for text in (ground, ink)]
    assert (
        (brightness[0] > 0.9 > 0.2 > brightness[1])
        if scheme == "light"
        else (brightness[0] < 0.2 < 0.8 < brightness[1])
    )
    assert said == []


def test_it_prints_on_a_sheet_in_black_on_white(open_page):
    page, _ = open_page(color_scheme="dark")
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.set_viewport_size({"width": 740, "height": 1000})
    page.emulate_media(media="print")
    assert measure(page, "getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert measure(page, "document.documentElement.scrollWidth") <= 740
    assert page.locator(".tools").first.is_hidden()


def test_without_scripts_there_are_tables(open_page):
    page, _ = open_page(java_script_enabled=False)
    assert "The tables below them have their numbers" in page.locator("noscript").first.inner_text()
    figures = page.locator("figure:has(.chart)")
    assert figures.count() == page.locator("figure:has(.chart) details table").count() > 30
    assert page.locator(".tools").first.is_hidden()
    details = figures.first.locator("details")
    details.locator("summary").click()
    assert details.locator("table").is_visible()


def test_a_hostile_name_is_text(page):
    name = "/".join(HOSTILE)
    assert name in page.locator("table").first.inner_text()
    assert page.locator("script").count() == 3


def test_scripts_and_styles_of_others_are_refused(open_page):
    page, said = open_page()
    page.evaluate("""() => {
        const script = Object.assign(document.createElement("script"), { textContent: "window.broken = true" });
        document.body.append(script);
        document.body.setAttribute("style", "color: red");
        document.body.append(Object.assign(document.createElement("img"), { src: "https://example.org/a.png" }));
    }""")
    page.wait_for_timeout(300)
    assert measure(page, "window.broken") is None and measure(page, "document.body.style.color") == ""
    assert len([text for text in said if "Content Security Policy" in text]) >= 3


def test_charts_have_descriptions_for_screen_readers(page):
    charts = page.locator(".chart")
    found = charts.evaluate_all("(all) => all.map((each) => [each.getAttribute('aria-label'), each.role])")
    labels, roles = zip(*found, strict=True)
    assert labels[0].startswith("Learning in CartPole-v1. Return of the mean policy") and all(labels)
    assert set(roles) == {"graphics-document"}


def test_videos_play(page):
    video = page.locator("video").first
    assert page.wait_for_function("document.querySelector('video').readyState >= 1")
    assert video.evaluate("(video) => video.duration") > 0
