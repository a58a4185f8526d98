"""Policy that records the calls of another policy, and its decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.core.retry.cassandra.policies_for_tests import UniformPolicy
from triclinium_core.retry.cassandra import RetryPolicy, RetryVerdict


class Question(NamedTuple):
    """Call of a policy, with its arguments and the policy's decision."""

    method: str
    arguments: Mapping[str, Any]
    verdict: RetryVerdict


class WatchedPolicy(UniformPolicy):
    """Policy that delegates to another policy, and records each call."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self.questions: list[Question] = []

    def decide(self, method: str, arguments: dict[str, Any]) -> RetryVerdict:
        """Delegate."""
        verdict: RetryVerdict = getattr(self._policy, method)(**arguments)
        self.questions.append(Question(method, arguments, verdict))
        return verdict
