"""Laws of drivers. Each law detects the drivers with the mistake that it forbids."""

from __future__ import annotations

import pytest

from docs.howto.examples.asyncio_driver import AsyncioClient
from docs.howto.examples.test_asyncio_driver import StandingClock, hold
from tests.core.testing.driver_laws.broken_drivers import (
    BROKEN,
    GivesAnotherResult,
    NeverResumes,
    ReadsThroughPauses,
    SendsWithoutLooking,
)
from triclinium_core.contract import couchbase
from triclinium_core.testing.driver_laws import LAWS, Law, LawBroken
from triclinium_core.testing.driver_laws.neutral.laws import SOON_SECONDS

pytestmark = pytest.mark.native


def is_broken(law: Law, driver: type[AsyncioClient]) -> bool:
    """Return whether a driver breaks a law."""
    try:
        hold(law, driver)
    except LawBroken:
        return True
    return False


@pytest.mark.parametrize("driver", BROKEN, ids=lambda driver: driver.__name__)
def test_mistake_breaks_its_law(driver: type[AsyncioClient]) -> None:
    """A driver with a mistake breaks the law that forbids this mistake."""
    assert is_broken(BROKEN[driver], driver)


@pytest.mark.long
@pytest.mark.parametrize("driver", BROKEN, ids=lambda driver: driver.__name__)
def test_mistake_breaks_only_its_law(driver: type[AsyncioClient]) -> None:
    """A driver with a mistake keeps all other laws. If it mishandles pauses, it also breaks a law that needs them."""
    needs_pauses = [BROKEN[SendsWithoutLooking]] if driver in (NeverResumes, ReadsThroughPauses) else []

    assert [BROKEN[driver], *needs_pauses] == [law for law in LAWS if is_broken(law, driver)]


def test_every_law_can_be_kept_and_broken() -> None:
    """The correct driver keeps all laws, and each law is broken by at least one broken driver."""
    assert [] == [law for law in LAWS if is_broken(law, AsyncioClient)]
    assert set(LAWS) == set(BROKEN.values())


def test_driver_that_mixes_up_results() -> None:
    """A driver that returns the same result for all mutations breaks the first law."""
    assert is_broken(LAWS[0], GivesAnotherResult)


class TakesItsTime(AsyncioClient):
    """Correct driver on a busy computer: the clock passes the delay of the laws' alarms while it feeds one event."""

    def handle(self, event: couchbase.Event) -> None:
        assert isinstance(self.loop, StandingClock)
        self.loop.seconds += 2 * SOON_SECONDS
        super().handle(event)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_slow_driver_keeps_the_law(law: Law) -> None:
    """A correct driver keeps each law even if alarms become due while it carries out an order."""
    assert not is_broken(law, TakesItsTime)
