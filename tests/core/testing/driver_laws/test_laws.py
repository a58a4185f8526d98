"""A driver that makes one mistake breaks one law."""

from __future__ import annotations

import pytest

from docs.howto.examples.asyncio_driver import AsyncioClient
from docs.howto.examples.test_asyncio_driver import hold
from tests.core.testing.driver_laws.broken_drivers import (
    BROKEN,
    GivesAnotherResult,
    NeverResumes,
    ReadsThroughPauses,
    SendsWithoutLooking,
)
from triclinium_core.testing.driver_laws import LAWS, Law, LawBroken

pytestmark = pytest.mark.native


def is_broken(law: Law, driver: type[AsyncioClient]) -> bool:
    """Tell whether a driver breaks a law."""
    try:
        hold(law, driver)
    except LawBroken:
        return True
    return False


@pytest.mark.parametrize("driver", BROKEN, ids=lambda driver: driver.__name__)
def test_a_mistake_breaks_its_law(driver: type[AsyncioClient]) -> None:
    """The law says what is wrong."""
    assert is_broken(BROKEN[driver], driver)


@pytest.mark.long
@pytest.mark.parametrize("driver", BROKEN, ids=lambda driver: driver.__name__)
def test_a_mistake_breaks_just_its_law(driver: type[AsyncioClient]) -> None:
    """A driver with one mistake keeps every other law; one without pauses fails where a pause makes bytes wait."""
    needs_pauses = [BROKEN[SendsWithoutLooking]] if driver in (NeverResumes, ReadsThroughPauses) else []

    assert [BROKEN[driver], *needs_pauses] == [law for law in LAWS if is_broken(law, driver)]


def test_every_law_can_be_kept_and_broken() -> None:
    """A law that no driver keeps is wrong, and one that no driver breaks says nothing."""
    assert [] == [law for law in LAWS if is_broken(law, AsyncioClient)]
    assert set(LAWS) == set(BROKEN.values())


def test_a_driver_that_mixes_results_up() -> None:
    """A driver that resumes a task with another result breaks the first law already."""
    assert is_broken(LAWS[0], GivesAnotherResult)
