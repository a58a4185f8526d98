"""Time limit for tests of servers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio


@pytest.fixture
async def safety_net() -> AsyncIterator[None]:
    """Cancel a test that hangs."""
    with trio.fail_after(60):
        yield
