"""Couchbase client for Trio: structured concurrency outside, a pure state machine inside.

This package exports the names of everyday use. Other names are in a module for each subject: ``triclinium.query``,
``triclinium.management`` and so on. The first use of a name or of such a module imports it. Import
``triclinium.adapters``, ``triclinium.opentelemetry`` and ``triclinium.testing`` explicitly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triclinium_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from triclinium import (
        abc,
        analytics,
        bulk,
        errors,
        health,
        management,
        query,
        retries,
        scans,
        search,
        subdocument,
        tapes,
        telemetry,
        topology,
        views,
    )
    from triclinium._cluster import Cluster
    from triclinium._cluster_driver.resolver import DnsResolver
    from triclinium._collection.binary import BinaryCollection
    from triclinium._collection.collection import Collection
    from triclinium._collection.replicas import ReplicaResults
    from triclinium._context import client_context, retrying
    from triclinium._deadlines import AbandonedOperation, fail_after
    from triclinium._from_environment import open_cluster_from_environment
    from triclinium._keyspace import Bucket, Scope
    from triclinium._open_cluster import ClusterArguments, open_cluster, run_cluster
    from triclinium._retry.attempts import Attempt, Attempts, attempts
    from triclinium._retry.retry import retried, retry
    from triclinium._retry.strategies import AdaptiveRetryStrategy, SimpleRetryStrategy, StandardRetryStrategy
    from triclinium._retry.tracing import tracing_retries
    from triclinium._retry.watching import watching_retries
    from triclinium._version import __version__
    from triclinium_core.checks import Duration
    from triclinium_core.kv.operation.durability import DurabilityLevel
    from triclinium_core.kv.operation.results import (
        Cas,
        CounterResult,
        ExistsResult,
        GetReplicaResult,
        GetResult,
        MutationResult,
        MutationToken,
    )
    from triclinium_core.options import (
        Authenticator,
        CertificateAuthenticator,
        JwtAuthenticator,
        PasswordAuthenticator,
        TimeoutOptions,
    )
    from triclinium_core.profiles import apply_profile
    from triclinium_core.retry.backoff import exponential
    from triclinium_core.retry.couchbase import (
        BestEffortRetryStrategy,
        CircuitBreakerOptions,
        ErrorMapRetryStrategy,
        FastFailOnTerminalErrorRetryStrategy,
        Service,
    )
    from triclinium_core.services.mutation_state import MutationState
    from triclinium_core.transcoding.transcoder import (
        EncodedValue,
        JsonTranscoder,
        RawBinaryTranscoder,
        RawJsonTranscoder,
        RawStringTranscoder,
        Transcoder,
    )

_MODULES = (
    "abc",
    "analytics",
    "bulk",
    "errors",
    "health",
    "management",
    "query",
    "retries",
    "scans",
    "search",
    "subdocument",
    "tapes",
    "telemetry",
    "topology",
    "views",
)
"""Public modules that are loaded on first use. A program must import other modules explicitly."""

_MODULE_OF = {
    "AbandonedOperation": "triclinium._deadlines",
    "AdaptiveRetryStrategy": "triclinium._retry.strategies",
    "Attempt": "triclinium._retry.attempts",
    "Attempts": "triclinium._retry.attempts",
    "Authenticator": "triclinium_core.options",
    "BestEffortRetryStrategy": "triclinium_core.retry.couchbase",
    "BinaryCollection": "triclinium._collection.binary",
    "Bucket": "triclinium._keyspace",
    "Cas": "triclinium_core.kv.operation.results",
    "CertificateAuthenticator": "triclinium_core.options",
    "CircuitBreakerOptions": "triclinium_core.retry.couchbase",
    "Cluster": "triclinium._cluster",
    "ClusterArguments": "triclinium._open_cluster",
    "Collection": "triclinium._collection.collection",
    "CounterResult": "triclinium_core.kv.operation.results",
    "DnsResolver": "triclinium._cluster_driver.resolver",
    "DurabilityLevel": "triclinium_core.kv.operation.durability",
    "Duration": "triclinium_core.checks",
    "EncodedValue": "triclinium_core.transcoding.transcoder",
    "ErrorMapRetryStrategy": "triclinium_core.retry.couchbase",
    "ExistsResult": "triclinium_core.kv.operation.results",
    "FastFailOnTerminalErrorRetryStrategy": "triclinium_core.retry.couchbase",
    "GetReplicaResult": "triclinium_core.kv.operation.results",
    "GetResult": "triclinium_core.kv.operation.results",
    "JsonTranscoder": "triclinium_core.transcoding.transcoder",
    "JwtAuthenticator": "triclinium_core.options",
    "MutationResult": "triclinium_core.kv.operation.results",
    "MutationState": "triclinium_core.services.mutation_state",
    "MutationToken": "triclinium_core.kv.operation.results",
    "PasswordAuthenticator": "triclinium_core.options",
    "RawBinaryTranscoder": "triclinium_core.transcoding.transcoder",
    "RawJsonTranscoder": "triclinium_core.transcoding.transcoder",
    "RawStringTranscoder": "triclinium_core.transcoding.transcoder",
    "ReplicaResults": "triclinium._collection.replicas",
    "Scope": "triclinium._keyspace",
    "Service": "triclinium_core.retry.couchbase",
    "SimpleRetryStrategy": "triclinium._retry.strategies",
    "StandardRetryStrategy": "triclinium._retry.strategies",
    "TimeoutOptions": "triclinium_core.options",
    "Transcoder": "triclinium_core.transcoding.transcoder",
    "__version__": "triclinium._version",
    "apply_profile": "triclinium_core.profiles",
    "attempts": "triclinium._retry.attempts",
    "client_context": "triclinium._context",
    "exponential": "triclinium_core.retry.backoff",
    "fail_after": "triclinium._deadlines",
    "open_cluster": "triclinium._open_cluster",
    "open_cluster_from_environment": "triclinium._from_environment",
    "retried": "triclinium._retry.retry",
    "retry": "triclinium._retry.retry",
    "retrying": "triclinium._context",
    "run_cluster": "triclinium._open_cluster",
    "tracing_retries": "triclinium._retry.tracing",
    "watching_retries": "triclinium._retry.watching",
}

if not TYPE_CHECKING:  # A type checker that sees ``__getattr__`` accepts misspelt names.
    __getattr__, __dir__ = lazy_names(globals(), _MODULE_OF, _MODULES)

__all__ = [
    "AbandonedOperation",
    "AdaptiveRetryStrategy",
    "Attempt",
    "Attempts",
    "Authenticator",
    "BestEffortRetryStrategy",
    "BinaryCollection",
    "Bucket",
    "Cas",
    "CertificateAuthenticator",
    "CircuitBreakerOptions",
    "Cluster",
    "ClusterArguments",
    "Collection",
    "CounterResult",
    "DnsResolver",
    "DurabilityLevel",
    "Duration",
    "EncodedValue",
    "ErrorMapRetryStrategy",
    "ExistsResult",
    "FastFailOnTerminalErrorRetryStrategy",
    "GetReplicaResult",
    "GetResult",
    "JsonTranscoder",
    "JwtAuthenticator",
    "MutationResult",
    "MutationState",
    "MutationToken",
    "PasswordAuthenticator",
    "RawBinaryTranscoder",
    "RawJsonTranscoder",
    "RawStringTranscoder",
    "ReplicaResults",
    "Scope",
    "Service",
    "SimpleRetryStrategy",
    "StandardRetryStrategy",
    "TimeoutOptions",
    "Transcoder",
    "__version__",
    "abc",
    "analytics",
    "apply_profile",
    "attempts",
    "bulk",
    "client_context",
    "errors",
    "exponential",
    "fail_after",
    "health",
    "management",
    "open_cluster",
    "open_cluster_from_environment",
    "query",
    "retried",
    "retries",
    "retry",
    "retrying",
    "run_cluster",
    "scans",
    "search",
    "subdocument",
    "tapes",
    "telemetry",
    "topology",
    "tracing_retries",
    "views",
    "watching_retries",
]
