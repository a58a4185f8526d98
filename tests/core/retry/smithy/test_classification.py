"""Classification of errors: three attributes are enough, and only interrupts that attributes raise propagate."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.rows import rows
from triclinium_core.retry.smithy import ClassifiedError, ErrorInfo, ErrorRetryInfo, HasFault, classify


def carrying(**attributes: Any) -> Exception:
    """Return an error that has these attributes."""
    error = ValueError("it failed")
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def test_missing_attributes_have_defaults() -> None:
    """If an error has none of the attributes, they have their defaults: it is unknown whether a retry is safe."""
    expected = ErrorInfo(
        is_retry_safe=None, retry_after=None, is_throttling_error=False, is_timeout_error=False, fault=None
    )

    assert expected == ErrorInfo() == classify(ValueError())


def test_the_three_attributes_of_the_page() -> None:
    """An error needs only three attributes (decision S2), although the library requires a fourth."""
    error = carrying(is_retry_safe=True, retry_after=2, is_throttling_error=True)

    assert isinstance(error, ErrorRetryInfo)
    assert not isinstance(error, HasFault)
    assert ErrorInfo(is_retry_safe=True, retry_after=2.0, is_throttling_error=True) == classify(error)


class Busy(Exception, ErrorRetryInfo):
    """Error that inherits from the protocol and sets one attribute."""

    is_retry_safe: bool | None = True


def test_an_error_inherits_the_defaults() -> None:
    """If a class inherits from the protocol, the attributes that it does not set have the defaults of the design."""
    error = Busy("busy")

    assert (True, None, False) == (error.is_retry_safe, error.retry_after, error.is_throttling_error)
    assert ErrorInfo(is_retry_safe=True) == classify(error)
    assert ("busy", True) == (str(error), isinstance(error, ErrorRetryInfo))


def test_timeout_and_fault_are_optional() -> None:
    """Timeout and fault are used if the error has these attributes."""
    error = carrying(is_timeout_error=True, fault="server")

    assert isinstance(error, HasFault)
    assert ErrorInfo(is_timeout_error=True, fault="server") == classify(error)
    assert "client" == classify(carrying(fault="client")).fault


class Seconds(float):
    """Number that raises when it is compared."""

    def __ge__(self, other: object) -> bool:
        raise OSError("not comparable")

    __le__ = __lt__ = __gt__ = __ge__


class Pretender:
    """Object that raises an error if its ``__class__`` is read."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Raise an error."""
        raise OSError("no class")


class Text(str):
    """Subclass of ``str`` whose hash raises."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise OSError("no hash")


INVALID: dict[str, list[object]] = {
    "is_retry_safe": [1, "yes", Pretender],
    "retry_after": [-1.0, math.nan, math.inf, 10**400, -(10**400), "5", True, Pretender],
    "is_throttling_error": [1],
    "is_timeout_error": ["no"],
    "fault": ["network", 500, ["server"], Text("server"), Pretender],
}


@rows(("attribute", "value"), [(name, value) for name, values in INVALID.items() for value in values])
def test_an_invalid_attribute_has_the_default(attribute: str, value: Any) -> None:
    """If one attribute has an invalid value, its default is used, and the other attributes keep their values."""
    others: dict[str, Any] = {name: True for name in ("is_retry_safe", "is_throttling_error") if name != attribute}
    nonsense = Pretender() if value is Pretender else value

    assert ErrorInfo(**others) == classify(carrying(**others, **{attribute: nonsense}))


def test_a_subclass_of_float_counts_as_float() -> None:
    """A subclass of ``float`` is converted to a float, even if it cannot be compared."""
    seconds = classify(carrying(retry_after=Seconds(2.5))).retry_after

    assert (float, 2.5) == (type(seconds), seconds)


@rows("attribute", ["is_retry_safe", "retry_after", "is_throttling_error", "is_timeout_error", "fault"])
def test_attributes_that_raise(attribute: str) -> None:
    """If reading an attribute raises an error, the attribute counts as missing, and the others keep their values."""

    class Computed(Exception):
        def __getattr__(self, name: str) -> object:
            if name == attribute:
                raise ZeroDivisionError("cannot be computed")
            return {"retry_after": 1.0, "fault": "server"}.get(name, True)

    everything = ErrorInfo(
        is_retry_safe=True, retry_after=1.0, is_throttling_error=True, is_timeout_error=True, fault="server"
    )

    assert everything._replace(**{attribute: ErrorInfo._field_defaults[attribute]}) == classify(Computed())


def test_interrupts_pass() -> None:
    """If an attribute raises KeyboardInterrupt, the classification propagates it."""

    class Interrupting(Exception):
        @property
        def is_retry_safe(self) -> bool:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        classify(Interrupting())


def test_classified_error() -> None:
    """A classified error has the information that the caller passed, and the original error as its cause."""
    error = OSError("down")
    info = ErrorInfo(
        is_retry_safe=True, retry_after=1.0, is_throttling_error=True, is_timeout_error=True, fault="server"
    )

    classified = ClassifiedError(error, info)

    assert info == classify(classified)
    assert error is classified.__cause__
    assert ("down", "down") == (str(classified), classified.message)


def test_an_error_without_text() -> None:
    """If ``str`` of the original error raises, the text of the classified error is the class name."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise LookupError

    assert "Mute" == str(ClassifiedError(Mute(), ErrorInfo()))
