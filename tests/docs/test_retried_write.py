"""The picture on the front page of the documentation is a run of the client."""

from __future__ import annotations

import logging
from xml.etree import ElementTree as ET

import pytest

from docs._ext.retried_write import LOGGER, RETRY_LOGGER, draw_stories, play
from triclinium_core.retry.couchbase.tables.reasons import RetryReason

pytestmark = pytest.mark.native

SVG = "{http://www.w3.org/2000/svg}"


def test_one_write_gets_through_and_one_is_not_sent_again() -> None:
    """With the best-effort delays, and an error for the write that may have been applied."""
    through, lost = play()

    assert [(0, 1), (1, 2), (3, 4)] == [(round(at), delay) for at, _, delay in through.attempts]
    assert (None, 7) == (through.error, round(through.ended_ms))
    assert [RetryReason.KV_TEMPORARY_FAILURE, RetryReason.SOCKET_CLOSED_WHILE_IN_FLIGHT] == [
        attempt.reason for attempt in lost.attempts
    ]
    assert (None, "RequestCanceledException") == (lost.attempts[-1].delay_ms, lost.error)


def test_the_drawing_shows_each_attempt() -> None:
    """A mark and a time for each, and for the success; whoever cannot see it has a title."""
    stories = play()
    root = ET.fromstring(draw_stories(stories))  # noqa: S314  # our own
    marks = sum(len(story.attempts) + (story.error is None) for story in stories)
    width, height = map(int, root.attrib["viewBox"].split()[2:])

    assert marks == len(list(root.iter(f"{SVG}circle")))
    assert all(
        0 < float(text.attrib["x"]) < width and 0 < float(text.attrib["y"]) < height for text in root.iter(f"{SVG}text")
    )
    assert "RequestCanceledException" in (root.findtext(f"{SVG}title") or "")


def test_playing_leaves_the_log_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody hears of the runs, and the logger has its level and its handlers."""
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    before = (RETRY_LOGGER.level, LOGGER.propagate, [*RETRY_LOGGER.handlers])
    play()

    assert before == (RETRY_LOGGER.level, LOGGER.propagate, RETRY_LOGGER.handlers)
    assert [] == caplog.records
