"""A defect in a decoder, from the outside: the program goes on, and the log has the traceback."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

import pytest
from trio.testing import MockClock

from tests.trio_client.pair import open_pair
from triclinium import Cluster
from triclinium.errors import DecodingFailureException

pytestmark = pytest.mark.usefixtures("contain_decoder_faults")


def boom(*args: object, **kwargs: object) -> NoReturn:
    """Fail as a decoder with a defect does."""
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
        ("triclinium_core.kv.open_operations.decode_response", read_document),
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
    """Each caller of a decoder with a defect gets an exception; the log has one ERROR with a traceback; others go on."""
    async with open_pair() as pair:
        people = pair.cluster.bucket("travel").default_collection()
        await people.upsert("ada", 1)
        with monkeypatch.context() as planted:
            planted.setattr(target, boom)
            for _ in range(3):
                with pytest.raises(DecodingFailureException):
                    await read(pair.cluster)
        found = await people.get("ada")

    (record,) = (record for record in caplog.records if record.levelno == logging.ERROR)
    assert 1 == found.content
    assert "triclinium.connection" == record.name
    assert record.exc_info is not None
    assert "in boom" in (record.exc_text or "")
