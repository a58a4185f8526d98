"""Effects of a defect in a decoder: the program continues, and the log has the traceback."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

import pytest
from trio.testing import MockClock

from tests.trio_client.pair import open_pair
from triclinium import Cluster, Service, errors
from triclinium.search import MatchAllQuery
from triclinium.testing import FakeAnswer, open_fake_cluster

pytestmark = pytest.mark.usefixtures("contain_decoder_faults")


def boom(*args: object, **kwargs: object) -> NoReturn:
    """Raise an exception, as a decoder with a defect would."""
    raise KeyError("planted")


async def read_document(cluster: Cluster) -> object:
    """Read a document by its key."""
    return await cluster.bucket("travel").default_collection().get("ada")


async def read_rows(cluster: Cluster) -> object:
    """Read the rows of a statement."""
    async with cluster.query("SELECT 1") as result:
        return await result.rows()


@pytest.mark.parametrize(
    ("target", "read"),
    [
        ("triclinium_core.runtime.kv.carrier.decode_response", read_document),
        ("triclinium_core.services.answer.rows.RowSplitter.feed", read_rows),
    ],
)
async def test_a_defect_is_logged_once(
    target: str,
    read: Callable[[Cluster], Awaitable[object]],
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a decoder raises, each waiting call raises, the log has one ERROR with the traceback, and later calls work."""
    async with open_pair() as pair:
        people = pair.cluster.bucket("travel").default_collection()
        await people.upsert("ada", 1)
        with monkeypatch.context() as planted:
            planted.setattr(target, boom)
            for _ in range(3):
                with pytest.raises(errors.DecodingFailureException):
                    await read(pair.cluster)
        found = await people.get("ada")

    (record,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert 1 == found.content
    assert "triclinium.connection" == record.name
    assert record.exc_info is not None
    assert "in boom" in (record.exc_text or "")


@pytest.mark.parametrize("takes_all", [False, True])
async def test_a_defect_in_a_row(
    takes_all: bool, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect in the decoder of rows ends the request and is logged with a traceback, and the next search works."""
    hit = {"index": "hotels", "id": "a", "score": 1.0}
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        fake.nodes.script.answer("hotels", FakeAnswer(rows=[hit] * 3), service=Service.SEARCH)
        with monkeypatch.context() as planted:
            planted.setattr("triclinium_core.services.search.result.decode_row", boom)
            with pytest.raises(errors.DecodingFailureException):
                await read_hits(cluster, takes_all=takes_all)
        hits = await read_hits(cluster, takes_all=takes_all)

    (record,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert 3 == hits
    assert "in boom" in (record.exc_text or "")


async def read_hits(cluster: Cluster, *, takes_all: bool) -> int:
    """Return the number of hits of a search."""
    async with cluster.search("hotels", MatchAllQuery()) as result:
        return len(await result.rows()) if takes_all else len([hit async for hit in result])
