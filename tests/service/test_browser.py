# SPDX-License-Identifier: BSD-3-Clause
"""Every page's main act in a real browser: by keyboard, with the script, under the strict policy.

`make test-browser` runs it, with Playwright and Chromium (Debian: chromium).
ADIABAT_SHOTS=FOLDER keeps pictures of every page: light, dark, narrow.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress

import pytest

import adiabat
from store_tools import people

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
    pytest.mark.skipif("ADIABAT_BROWSER" not in os.environ, reason="run by make test-browser"),
]
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
SERVE = "from adiabat.cli.main import app; app()"
SECONDS = 120


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A service in a process of its own, on rows of which many are mislabelled; its address."""
    folder = tmp_path_factory.mktemp("browser") / "desk"
    folder.mkdir()
    rows = people(0, 120)
    rows.loc[20:60:2, "good"] = rows.loc[20:60:2, "good"].map({"yes": "no", "no": "yes"})
    store = adiabat.create_store(
        folder / "loans", id="name", label="good", categories={"colour": None}, C=5.0, gamma=0.5,
        calibration="sigmoid",
    )  # fmt: skip
    store.learn(rows)
    store.close()
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    words = [sys.executable, "-c", SERVE, "serve", str(folder), "--port", str(port)]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError):
            urllib.request.urlopen(f"{address}/readyz", timeout=5)
            break
        time.sleep(0.1)
    yield address
    process.terminate()
    # Uvicorn stops in good order, then raises the signal again.
    assert process.wait(SECONDS) in (0, -signal.SIGTERM)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield made
        made.close()


@pytest.fixture(params=["light", "dark", "narrow"])
def page(request, browser, desk):
    """A page whose console must stay silent and which asks nobody but the service."""
    width = 390 if request.param == "narrow" else 1100
    scheme = "dark" if request.param == "dark" else "light"
    context = browser.new_context(
        base_url=desk, color_scheme=scheme, viewport={"width": width, "height": 900}
    )
    made = context.new_page()
    made.set_default_timeout(1000 * SECONDS)
    said = []
    made.on("console", lambda message: said.append(message.text))
    made.on("pageerror", lambda error: said.append(str(error)))
    made.on("request", lambda asked: said.extend(
        [] if asked.url.startswith((desk, "data:")) else [asked.url]))  # fmt: skip

    def shoot(name):
        folder = os.environ.get("ADIABAT_SHOTS")
        if folder:
            made.screenshot(path=f"{folder}/{name}-{request.param}.png", full_page=True)
        wide = made.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} is wider than the window"

    made.shoot = shoot
    yield made
    context.close()
    assert said == []


def test_every_page_s_main_act(page, request):
    kind = request.node.callspec.params["page"]
    page.goto("/")
    page.locator("summary").click()
    page.shoot("models")

    page.get_by_role("link", name="Predict").click()
    page.get_by_label("income").fill("2.5")
    page.get_by_label("age").fill("1")
    page.get_by_label("colour").select_option("red")
    page.get_by_label("colour").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="yes").wait_for()
    page.get_by_text("Confidence").wait_for()
    page.shoot("predict")

    page.get_by_role("link", name="Review").click()
    first = page.locator("#row-id").inner_text()
    page.shoot("review")
    page.keyboard.press("k")
    page.get_by_text("Kept as it is.").wait_for()
    second = page.locator("#row-id").inner_text()
    assert second != first
    page.keyboard.press("1")
    page.get_by_text("Corrected to").wait_for()
    page.keyboard.press("s")
    page.get_by_text("Skipped.").wait_for()

    clicks = 0
    page.get_by_role("link", name="Erasure").click()
    clicks += 1
    page.get_by_label("Ids").fill(f"person-0000{['light', 'dark', 'narrow'].index(kind)}\nnobody")
    page.get_by_role("button", name="Look up").click()
    clicks += 1
    page.get_by_label("Reference").fill(f"DSR-{kind}")
    page.shoot("erasure")
    page.get_by_role("button", name="Erase 1 row").click()
    clicks += 1
    page.get_by_text("1 training row was erased under the reference").wait_for()
    page.shoot("receipt")
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save as a page").click()
    clicks += 1
    assert saved.value.suggested_filename == "receipt.html" and clicks <= 5

    page.get_by_role("link", name="Log").click()
    page.get_by_text(f"DSR-{kind}").wait_for()
    page.shoot("log")
    page.get_by_role("button", name="Verify and retrain").click()
    page.get_by_text("All of it holds.").wait_for()
    page.shoot("verification")


def test_the_first_tab_goes_to_the_content(page):
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
