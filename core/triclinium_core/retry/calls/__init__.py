"""Retries of function calls, under any strategy with Smithy's interface.

The strategy decides whether and when to retry; this package applies the caller's rules and deadline, and records the
attempts.

``call_machine`` has the state machine of one call, from its first failure to its end. ``terms`` has the options that
the caller chose. ``retryable`` applies the caller's rules on which errors and results to retry, and ``http_rules`` has
rules for HTTP requests. ``history`` attaches records of the attempts to the last error. ``reports`` has the reports
that hooks receive.

The package uses ``retry.smithy``, which does not depend on it.

This package exports the names that a driver needs. It loads each name on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triclinium_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from triclinium_core.retry.calls.call_machine import (
        AwaitStrategy,
        CallMachine,
        Decision,
        GiveUp,
        Sleep,
        first_delay,
        refuse_first,
    )
    from triclinium_core.retry.calls.history import AttemptRecord, RetryEnding, attempts_of
    from triclinium_core.retry.calls.http_rules import (
        IDEMPOTENT_METHODS,
        RETRIED_STATUSES,
        HttpFailure,
        HttpRequestFacts,
        HttpRetryRules,
        parse_retry_after,
    )
    from triclinium_core.retry.calls.reports import RetryGivenUp, RetryHook, RetryReport, RetryScheduled, RetrySucceeded
    from triclinium_core.retry.calls.retryable import RETRY_SAFE, RetryOn, UnwelcomeResultError, check_info
    from triclinium_core.retry.calls.terms import CallTerms, abandon, check_hooks, delay_of, is_refusal

_MODULE_OF = {
    "AttemptRecord": "triclinium_core.retry.calls.history",
    "AwaitStrategy": "triclinium_core.retry.calls.call_machine",
    "CallMachine": "triclinium_core.retry.calls.call_machine",
    "CallTerms": "triclinium_core.retry.calls.terms",
    "Decision": "triclinium_core.retry.calls.call_machine",
    "GiveUp": "triclinium_core.retry.calls.call_machine",
    "HttpFailure": "triclinium_core.retry.calls.http_rules",
    "HttpRequestFacts": "triclinium_core.retry.calls.http_rules",
    "HttpRetryRules": "triclinium_core.retry.calls.http_rules",
    "IDEMPOTENT_METHODS": "triclinium_core.retry.calls.http_rules",
    "RETRIED_STATUSES": "triclinium_core.retry.calls.http_rules",
    "RETRY_SAFE": "triclinium_core.retry.calls.retryable",
    "RetryEnding": "triclinium_core.retry.calls.history",
    "RetryGivenUp": "triclinium_core.retry.calls.reports",
    "RetryHook": "triclinium_core.retry.calls.reports",
    "RetryOn": "triclinium_core.retry.calls.retryable",
    "RetryReport": "triclinium_core.retry.calls.reports",
    "RetryScheduled": "triclinium_core.retry.calls.reports",
    "RetrySucceeded": "triclinium_core.retry.calls.reports",
    "Sleep": "triclinium_core.retry.calls.call_machine",
    "UnwelcomeResultError": "triclinium_core.retry.calls.retryable",
    "abandon": "triclinium_core.retry.calls.terms",
    "attempts_of": "triclinium_core.retry.calls.history",
    "check_hooks": "triclinium_core.retry.calls.terms",
    "check_info": "triclinium_core.retry.calls.retryable",
    "delay_of": "triclinium_core.retry.calls.terms",
    "first_delay": "triclinium_core.retry.calls.call_machine",
    "is_refusal": "triclinium_core.retry.calls.terms",
    "parse_retry_after": "triclinium_core.retry.calls.http_rules",
    "refuse_first": "triclinium_core.retry.calls.call_machine",
}

if not TYPE_CHECKING:  # A type checker that sees ``__getattr__`` accepts misspelt names.
    __getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)

__all__ = [
    "IDEMPOTENT_METHODS",
    "RETRIED_STATUSES",
    "RETRY_SAFE",
    "AttemptRecord",
    "AwaitStrategy",
    "CallMachine",
    "CallTerms",
    "Decision",
    "GiveUp",
    "HttpFailure",
    "HttpRequestFacts",
    "HttpRetryRules",
    "RetryEnding",
    "RetryGivenUp",
    "RetryHook",
    "RetryOn",
    "RetryReport",
    "RetryScheduled",
    "RetrySucceeded",
    "Sleep",
    "UnwelcomeResultError",
    "abandon",
    "attempts_of",
    "check_hooks",
    "check_info",
    "delay_of",
    "first_delay",
    "is_refusal",
    "parse_retry_after",
    "refuse_first",
]
