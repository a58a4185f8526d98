"""Default tape of clients, which the pytest plugin sets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from trio.testing import MockClock

from triclinium.tapes import EventTape, Tape
from triclinium.testing import open_fake_cluster
from triclinium_core.options import ClientOptions
from triclinium_core.testing import replayed


async def test_default_tape_records_each_client(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client without a tape gets the default tape, if the default makes one; a tape of the user takes precedence."""
    paths = iter([tmp_path / "first", None, tmp_path / "third"])
    seen: list[str] = []

    def make_default(options: ClientOptions) -> Tape | None:
        seen.append(options.connection_string)
        path = next(paths)
        return None if path is None else EventTape(path)

    monkeypatch.setattr(Tape, "make_default", make_default)
    async with open_fake_cluster() as fake:
        for tape in (None, None, EventTape(tmp_path / "own"), None):
            async with fake.open_client(tape=tape) as cluster:
                await cluster.bucket("default").default_collection().exists("ada")
    names = sorted(os.listdir(tmp_path))

    assert [fake.connection_string] * 3 == seen
    assert ["first", "own", "third"] == names
    assert 1 == len({replayed(str(tmp_path / name)).calls for name in names})
