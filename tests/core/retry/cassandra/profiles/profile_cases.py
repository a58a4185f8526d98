"""Custom retry policies for the tests of profiles."""

from __future__ import annotations

from typing import Any

from tests.core.retry.cassandra.policies_for_tests import Always
from triclinium_core.retry.cassandra import RETHROW


class Custom(Always):
    """Custom policy that stores its options."""

    def __init__(self, **options: object) -> None:
        super().__init__(RETHROW)
        self.options = options


class Other(Custom):
    """Custom policy of a second class."""


def own(limit: int) -> Custom:
    """Return a policy with one option."""
    return Custom(limit=limit)


def raises(**options: object) -> Custom:
    """Raise an exception, as the constructor of a policy may do for options that contradict each other."""
    raise ZeroDivisionError("no")


OWN: dict[str, Any] = {"Own": own, "Raises": raises, "NoPolicy": dict}
