"""The sans-IO core of triclinium: a Couchbase client, and its retries, as pure machines."""

from __future__ import annotations

from triclinium_core._speedups import implementation, use_implementation
from triclinium_core.kv.client_machine import ClientMachine
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.options import (
    Authenticator,
    CertificateAuthenticator,
    ClientOptions,
    JwtAuthenticator,
    PasswordAuthenticator,
    TimeoutOptions,
)
from triclinium_core.retry.backoff import controlled, exponential
from triclinium_core.retry.circuit_breaker import CircuitBreakerOptions
from triclinium_core.retry.machine import RetryMachine
from triclinium_core.retry.reasons import RetryReason
from triclinium_core.retry.request import RetryRequest
from triclinium_core.retry.strategy import (
    AsyncRetryStrategy,
    BestEffortRetryStrategy,
    ErrorMapRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
    RetryAction,
    RetryStrategy,
)
from triclinium_core.transcoding.transcoder import (
    EncodedValue,
    JsonTranscoder,
    RawBinaryTranscoder,
    RawJsonTranscoder,
    RawStringTranscoder,
    Transcoder,
)

__all__ = [
    "AsyncRetryStrategy",
    "Authenticator",
    "BestEffortRetryStrategy",
    "CertificateAuthenticator",
    "CircuitBreakerOptions",
    "ClientMachine",
    "ClientOptions",
    "DurabilityLevel",
    "EncodedValue",
    "ErrorMapRetryStrategy",
    "FastFailOnTerminalErrorRetryStrategy",
    "JsonTranscoder",
    "JwtAuthenticator",
    "PasswordAuthenticator",
    "RawBinaryTranscoder",
    "RawJsonTranscoder",
    "RawStringTranscoder",
    "RetryAction",
    "RetryMachine",
    "RetryReason",
    "RetryRequest",
    "RetryStrategy",
    "TimeoutOptions",
    "Transcoder",
    "controlled",
    "exponential",
    "implementation",
    "use_implementation",
]
