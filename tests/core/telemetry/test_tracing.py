"""Checks of spans that users pass."""

from __future__ import annotations

import pytest

from triclinium_core.errors import InvalidArgumentException
from triclinium_core.telemetry.tracing import SPAN_METHODS, check_parent, is_span


class Proxy:
    """Object that raises an error if an attribute is read, such as a proxy without a target."""

    def __getattr__(self, name: str) -> object:
        raise ZeroDivisionError(name)


class Span:
    """Span that records nothing."""

    def set_attribute(self, *_: object) -> None:
        """Do nothing."""

    add_event = set_status = end = set_attribute


@pytest.mark.parametrize("span", [None, Span()])
def test_a_valid_parent_is_returned(span: Span | None) -> None:
    """A span, and None, is returned unchanged."""
    assert check_parent(span) is span


@pytest.mark.parametrize("span", [object(), "span", Span, Proxy()], ids=["object", "text", "class", "proxy"])
def test_an_invalid_parent_is_refused(span: object) -> None:
    """An object without the methods, a class, and an object whose attributes raise are not spans."""
    assert not is_span(span)
    with pytest.raises(InvalidArgumentException) as caught:
        check_parent(span)

    assert "parent_span" == caught.value.parameter
    assert all(method in str(caught.value) for method in SPAN_METHODS)
