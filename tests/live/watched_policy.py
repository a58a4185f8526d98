"""Policy that records the calls of another policy, and its decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from triclinium_core.retry.cassandra import RetryPolicy, RetryVerdict


class Question(NamedTuple):
    """Call of a policy, with its arguments and the policy's decision."""

    method: str
    arguments: Mapping[str, Any]
    verdict: RetryVerdict


class WatchedPolicy:
    """Policy that delegates to another policy, and records each call."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self.questions: list[Question] = []

    def on_read_timeout(self, **arguments: Any) -> RetryVerdict:
        """Delegate."""
        return self._ask("on_read_timeout", arguments)

    def on_write_timeout(self, **arguments: Any) -> RetryVerdict:
        """Delegate."""
        return self._ask("on_write_timeout", arguments)

    def on_unavailable(self, **arguments: Any) -> RetryVerdict:
        """Delegate."""
        return self._ask("on_unavailable", arguments)

    def on_request_aborted(self, **arguments: Any) -> RetryVerdict:
        """Delegate."""
        return self._ask("on_request_aborted", arguments)

    def on_error_response(self, **arguments: Any) -> RetryVerdict:
        """Delegate."""
        return self._ask("on_error_response", arguments)

    def _ask(self, method: str, arguments: Mapping[str, Any]) -> RetryVerdict:
        verdict: RetryVerdict = getattr(self._policy, method)(**arguments)
        self.questions.append(Question(method, arguments, verdict))
        return verdict
