"""Exception of a bulk block."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping

from tests.rows import rows
from triclinium import errors
from triclinium._bulk.failure import bulk_failure

FAILURES = tuple((f"k{number}", errors.DocumentNotFoundException("no such document")) for number in range(20))
COUNTS: Mapping[type[Exception], int] = {errors.DocumentNotFoundException: 30, errors.AmbiguousTimeoutException: 1}


@rows("copied", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])  # noqa: S301
def test_the_exception_can_be_copied(copied: Callable[[errors.BulkFailure], errors.BulkFailure]) -> None:
    """A copied or pickled exception has the same message, count, keys and classes."""
    failure = bulk_failure(40, FAILURES, COUNTS)
    other = copied(failure)

    assert type(failure) is type(other)
    assert str(failure) == str(other)
    assert (31, COUNTS) == (other.count, dict(other.counts))
    assert [key for key, _ in FAILURES] == [key for key, _ in other.failures]
    assert [type(error) for _, error in FAILURES] == [type(error) for _, error in other.failures]


def test_a_key_of_any_characters_is_printable() -> None:
    """The message is one printable line, whatever the first key and its exception contain."""
    failure = bulk_failure(1, (("a\nb\x1b[31m", errors.InvalidArgumentException("c\x1b[0m\nd")),), COUNTS)

    assert str(failure).isprintable()
