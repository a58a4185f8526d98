"""``uv run triclinium docs`` in this checkout: all pages, with the playground, in Chromium."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hosts.playground.browser import Browser
from tests.hosts.playground.choices import story

pytestmark = pytest.mark.hosts_full


def test_command_serves_the_playground(browser: Browser, assets: Path) -> None:
    """The command builds and serves the pages of this checkout; the playground runs, and links lead to pages."""
    command = [sys.executable, "-c", "from triclinium._cli import main; main()", "docs"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("Pages: ").strip()
        try:
            browser.open(f"{address}playground.html")

            assert browser.shows("story", story("upsert", "temporary_failure x3"))
            assert [] == browser.problems()

            browser.at("section#about-this-page a:has-text('Write a retry strategy')", "click")
            browser.page("waitForURL", f"{address}howto/write_a_strategy.html")
        finally:
            process.send_signal(signal.SIGTERM)
    assert 0 == process.returncode
