"""The playground in Chromium: choices, the address, code of the reader, the simulator, the keyboard, and limits."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from docs._static.playground.answers import OWN
from tests.environment import CACHE
from tests.hosts.playground.browser import ANSWERED, LOADING, READY, RUNS, Browser
from tests.hosts.playground.choices import outage, story
from tests.hosts.playground.test_answers import PATIENT

pytestmark = pytest.mark.hosts

ENDLESS = "while True: pass"
HOSTILE = """\
import js
from pyodide.ffi import to_js
html = '<img src="x" onerror="document.title = 1"><p onclick="x" style="color: red">text<script>alert(1)</script></p>'
js.postMessage(to_js({"html": html}, dict_converter=js.Object.fromEntries))
js.fetch("http://127.0.0.1:PORT/")
strategy = 1
"""
RECORDED = story("upsert", "temporary_failure x3")
PAUSES = """\
let released;
window.hold = () => { released = new Promise((resolve) => { window.release = resolve; }); };
Worker = class extends Worker {
  set onmessage(receive) { super.onmessage = async (event) => { await released; receive(event); }; }
};
"""
"""Script whose ``hold`` keeps all messages of workers from the page until ``release``, so that a test sees each status."""
COUNTS = """\
let answers = 0;
Worker = class extends Worker {
  set onmessage(receive) {
    super.onmessage = (event) => { receive(event); if ("html" in event.data) document.body.dataset.answers = ++answers; };
  }
};
"""
"""Script that counts the answers of workers in an attribute of the page, also those that the page ignores."""


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Browser]:
    """Yield a browser with the playground, whose console must stay free of errors."""
    browser.open(address)
    yield browser
    assert [] == browser.problems()


def fault(text: str) -> str:
    """Return the selector of a fault's check box."""
    return f"input[name=fault][value={json.dumps(text)}]"


def write(page: Browser, code: str) -> None:
    """Select the reader's own strategy, and write its code."""
    page.at("select[name=strategy]", "selectOption", OWN)
    page.at("textarea", "fill", code)


def test_answers_equal_those_of_native_core(page: Browser) -> None:
    """Each choice gives the same elements as the native core, whatever was chosen before."""
    assert page.shows("story", RECORDED)

    page.at("select[name=operation]", "selectOption", "increment")
    page.at(fault("temporary_failure x3"), "click")
    page.at(fault("hang_up_after_applying"), "click")
    page.wait_for(ANSWERED)
    assert page.shows("story", story("increment", "hang_up_after_applying"))

    page.at("select[name=strategy]", "selectOption", "StandardRetryStrategy")
    page.at("input[name=more]", "fill", "locked x2; @1: kill for 1 seconds")
    page.at("input[name=more]", "press", "Tab")
    page.wait_for(ANSWERED)
    more = "locked x2; @1: kill for 1 seconds"
    assert page.shows(
        "story", story("increment", "hang_up_after_applying", strategy="StandardRetryStrategy", more=more)
    )

    page.at("input[name=more]", "fill", "")
    page.at("select[name=operation]", "selectOption", "idempotent statement")
    page.at(fault("Overloaded"), "click")
    page.wait_for(ANSWERED)
    assert page.shows("story", story("idempotent statement", "Overloaded", strategy="DefaultRetryPolicy"))


def test_address_restores_the_choice(page: Browser, address: str) -> None:
    """The address holds the choice, so that another page with it has the same fields and the same answer."""
    page.at("select[name=operation]", "selectOption", "get")
    page.at(fault("locked x2"), "click")
    page.at("select[name=strategy]", "selectOption", "AdaptiveRetryStrategy")
    page.at("#outage input[name=clients]", "fill", "120")
    page.at("#outage input[name=clients]", "press", "Tab")
    held = page.evaluate("location.hash")

    fields = parse_qs(urlsplit(held).fragment)
    assert (["get"], ["AdaptiveRetryStrategy"], ["120"]) == (fields["operation"], fields["strategy"], fields["clients"])
    assert ["temporary_failure x3", "locked x2"] == fields["fault"]

    page.open(address + held)

    assert page.shows("story", story("get", "temporary_failure x3", "locked x2", strategy="AdaptiveRetryStrategy"))
    assert "120" == page.at("#outage input[name=clients]", "inputValue")
    assert held == page.evaluate("location.hash")

    # An address that another version wrote, with choices that this page lacks.
    page.evaluate("location.hash = 'operation=fetch&strategy=none&fault=locked+x2'")
    page.wait_for(ANSWERED)
    page.at("#story-answer:has-text('upsert')", "waitFor")
    assert page.shows("story", story("upsert", "locked x2"))


def test_code_in_address_needs_click(browser: Browser, address: str) -> None:
    """Code in an address is shown, and runs only after a click on Run."""
    choice = f"#operation=get&strategy={quote(OWN)}&more=locked+always&code={quote(PATIENT)}"

    browser.open(address + choice, status=READY)

    assert PATIENT == browser.at("textarea", "inputValue")
    assert browser.shows("story", RECORDED)

    browser.at("#story button:text('Run')", "click")
    browser.wait_for(ANSWERED)

    assert browser.shows("story", story("get", strategy=OWN, more="locked always", code=PATIENT))
    assert [] == browser.problems()


def test_address_changed_while_loading_runs_no_code(browser: Browser, address: str) -> None:
    """Code in an address that replaces another one while Python is being loaded does not run."""
    browser.open(address, status=LOADING, before=PAUSES + "hold();")
    browser.evaluate(f"location.hash = 'operation=get&strategy={OWN}&code={quote('1 / 0')}'")
    browser.at(f"select[name=strategy]:has(option:checked:text-is('{OWN}'))", "waitFor")
    browser.evaluate("release()")
    browser.wait_for(READY)
    browser.at("#outage button:text('Simulate')", "click")
    browser.wait_for(ANSWERED)

    assert browser.shows("story", RECORDED)


def test_simulation_while_loading_keeps_the_story(browser: Browser, address: str) -> None:
    """A simulation that is requested while Python is being loaded does not replace the answer to the choice."""
    browser.open(f"{address}#operation=get&fault=locked+x2", status=LOADING, before=PAUSES + "hold();")
    browser.at("#outage button:text('Simulate')", "click")
    browser.evaluate("release()")

    browser.at("#story-answer p:has-text('GetResult')", "waitFor")

    assert browser.shows("story", story("get", "locked x2"))


def test_address_holds_the_code_of_the_simulator(page: Browser, address: str) -> None:
    """Code that only the simulator uses is shown, and is in the address."""
    write(page, PATIENT)
    page.at(f"input[name=fleet][value='{OWN}']", "click")
    page.at("select[name=strategy]", "selectOption", "BestEffortRetryStrategy")
    page.wait_for(ANSWERED)

    assert page.at("textarea", "isVisible")
    assert [PATIENT] == parse_qs(urlsplit(page.evaluate("location.href")).fragment)["code"]


def test_endless_code_can_be_stopped(browser: Browser, address: str) -> None:
    """Stop ends code that never ends; Python is loaded again, and answers the next choice."""
    browser.open(address, before=PAUSES)
    write(browser, ENDLESS)
    browser.at("#story button:text('Run')", "click")
    browser.wait_for(RUNS)

    browser.evaluate("hold()")
    browser.at("#story button[name=stop]", "click")
    browser.wait_for("Stopped")
    browser.evaluate("release()")
    browser.wait_for(READY)
    write(browser, PATIENT)
    browser.at("#story button:text('Run')", "click")
    browser.wait_for(ANSWERED)

    assert browser.shows("story", story("upsert", "temporary_failure x3", strategy=OWN, code=PATIENT))
    assert [] == browser.problems()


def test_hostile_code_reaches_no_host(browser: Browser, address: str) -> None:
    """Code of a reader adds no element outside the list to the page, and its requests reach no other server."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        browser.open(address, before=COUNTS)
        write(browser, HOSTILE.replace("PORT", str(other.getsockname()[1])))
        browser.at("#story button:text('Run')", "click")
        browser.at("#story-answer > p:has-text('alert')", "waitFor")
        # Wait for the third answer, that of the core to the hostile code: a late one would answer the next choice.
        browser.at("body[data-answers='3']", "waitFor")

        assert "<p>textalert(1)</p>" == browser.evaluate("document.getElementById('story-answer').innerHTML")
        refused = browser.problems()
        assert all("violates the following Content Security Policy directive" in each for each in refused), refused

        write(browser, PATIENT)
        browser.at("#story button:text('Run')", "click")
        browser.at("#story-answer :text('Success')", "waitFor")
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.accept()


def test_simulator_draws_the_outage(page: Browser) -> None:
    """The simulator shows the figures and pictures that the native core gives for the same scenario."""
    page.at("#outage select[name=kind]", "selectOption", "silent")
    page.at("#outage input[value=best_effort_jittered]", "click")
    page.at("#outage button:text('Simulate')", "click")
    page.wait_for(ANSWERED)

    assert page.shows("outage", outage(["none", "best_effort", "simple", "standard"], kind="silent"))
    assert 4 == page.at("#outage-answer svg", "count")
    assert page.shows("story", RECORDED)


def test_keyboard_alone_suffices(page: Browser) -> None:
    """The Tab key reaches faults and Run; a focused input has an outline, keys change fields, Enter runs the choice."""
    page.at("select[name=operation]", "focus")
    page.page("keyboard.press", "ArrowDown")
    page.page("keyboard.press", "Tab")
    page.page("keyboard.press", "Tab")
    assert "temporary_failure x3" == page.evaluate("document.activeElement.value")
    page.page("keyboard.press", "Space")
    page.page("keyboard.press", "Tab")
    page.page("keyboard.press", "Space")
    page.at("input[name=more]", "focus")
    page.page("keyboard.type", "not_my_vbucket")
    assert "none" != page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    page.page("keyboard.press", "Enter")
    page.wait_for(ANSWERED)

    page.at("#story-answer :text('NOT_MY_VBUCKET') >> nth=0", "waitFor")
    assert page.shows("story", story("get", "locked x2", more="not_my_vbucket"))
    page.page("keyboard.press", "Tab")
    assert "Run" == page.evaluate("document.activeElement.textContent")


CONTRAST = """(() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = (colour) => rgb(colour).slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const ratio = (colour) => { const ink = light(colour); return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05); };
  const texts = [...document.querySelectorAll("#playground :is(p, span, label, legend, caption, summary, td, code, button:enabled)")];
  const found = texts.filter((each) => each.offsetParent).map((each) => [each.textContent, ratio(getComputedStyle(each).color), 4.5]);
  const curves = [...document.querySelectorAll(".fleet path")].map((each) => [each.className.baseVal, ratio(getComputedStyle(each).fill), 3]);
  return [...found, ...curves].filter(([, ratio, least]) => ratio < least);
})()"""
"""Expression for the texts and curves with too little contrast, with the minimum of each (WCAG 2.1, level AA)."""


def test_page_fits_every_screen(page: Browser) -> None:
    """At 1280 and 400 pixels, light and dark, nothing exceeds the width, and texts and curves have contrast."""
    # The screenshots stay in the cache, where a person can look at them.
    folder = CACHE / "hosts" / "screenshots"
    page.at("select[name=operation]", "selectOption", "increment")
    page.at(fault("drop_response"), "click")
    page.at("#outage button:text('Simulate')", "click")
    page.at("details >> nth=0", "click")
    page.wait_for(ANSWERED)
    for scheme in ("light", "dark"):
        page.page("emulateMedia", {"colorScheme": scheme})
        for width in (1280, 400):
            page.page("setViewportSize", {"width": width, "height": 900})

            assert [width, width] == page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert [] == page.evaluate(CONTRAST)
            page.page("screenshot", {"path": str(folder / f"playground-{width}-{scheme}.png"), "fullPage": True})


def test_recorded_answers_without_javascript(browser: Browser, address: str) -> None:
    """Without JavaScript, the page shows recorded answers and no forms."""
    browser.open(address, status="The answers below were recorded", javaScript=False)

    assert browser.at("noscript", "textContent").startswith("This browser runs no JavaScript")
    assert 9 == browser.at("#story-answer tr", "count")
    assert browser.at("#outage-answer figure >> nth=0", "isVisible")
    assert not browser.at("form#story", "isVisible")
    assert not browser.at("form#outage", "isVisible")


def test_recorded_answers_without_webassembly(browser: Browser, address: str) -> None:
    """Without WebAssembly, the page shows recorded answers, gives the reason, and loads no Python."""
    browser.open(address, status="Only recorded answers are shown, because this browser", before="delete WebAssembly")

    assert browser.shows("story", RECORDED)
    assert not browser.at("form#story", "isVisible")
    assert [] == browser.problems()


def test_recorded_answers_without_pyodide(browser: Browser, bare_address: str) -> None:
    """Pages that were built without Pyodide show recorded answers, and name the file that is missing."""
    browser.open(bare_address, status="Only recorded answers are shown; Python cannot be loaded")

    status = browser.at("#playground-status", "textContent")

    assert status.endswith("/_static/assets/assets.json is missing (HTTP status 404)")
    assert browser.shows("story", RECORDED)
    assert all(re.search("404", each) for each in browser.problems())


def test_run_loads_python_again(browser: Browser, address: str) -> None:
    """If a file of Python could not be loaded, Run loads Python again, and shows the core's answer."""
    refuse_once = (
        "const real = Worker; Worker = class { constructor() { Worker = real; return new real('/none.js'); } }"
    )
    browser.open(address, status="Only recorded answers are shown; Python cannot be loaded", before=refuse_once)
    browser.at("select[name=operation]", "selectOption", "increment")
    browser.wait_for(ANSWERED)

    assert browser.shows("story", story("increment", "temporary_failure x3"))
