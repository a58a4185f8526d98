"""Policies for tests: a base, a policy that returns or raises one object, and one that must not be called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from triclinium_core.retry.cassandra import RetryVerdict


class UniformPolicy(ABC):
    """Policy whose five methods each call ``decide`` with the method's name and arguments."""

    @abstractmethod
    def decide(self, method: str, arguments: dict[str, Any]) -> RetryVerdict:
        """Return the verdict of a method."""

    def on_read_timeout(self, **arguments: Any) -> RetryVerdict:
        """Return the verdict."""
        return self.decide("on_read_timeout", arguments)

    def on_write_timeout(self, **arguments: Any) -> RetryVerdict:
        """Return the verdict."""
        return self.decide("on_write_timeout", arguments)

    def on_unavailable(self, **arguments: Any) -> RetryVerdict:
        """Return the verdict."""
        return self.decide("on_unavailable", arguments)

    def on_request_aborted(self, **arguments: Any) -> RetryVerdict:
        """Return the verdict."""
        return self.decide("on_request_aborted", arguments)

    def on_error_response(self, **arguments: Any) -> RetryVerdict:
        """Return the verdict."""
        return self.decide("on_error_response", arguments)


@dataclass
class Always(UniformPolicy):
    """Policy that records its calls and always returns one verdict, or raises it if it is an exception."""

    answer: Any
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def decide(self, method: str, arguments: dict[str, Any]) -> RetryVerdict:
        """Return or raise the answer."""
        self.asked.append((method, arguments))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


def never_asked() -> Always:
    """Return a policy whose methods all raise AssertionError."""
    return Always(AssertionError("the policy must not be called"))
