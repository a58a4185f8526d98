"""Sans-IO core of triclinium: a Couchbase client and its retries as pure state machines.

The package loads a name from its module when the name is first used. Importing a module of this package therefore loads
only that module and its imports, not the client. ``triclinium_core.retry`` needs only the standard library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from triclinium_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from triclinium_core._speedups import implementation, use_implementation
    from triclinium_core._version import __version__
    from triclinium_core.checks import Duration
    from triclinium_core.client.client_machine import ClientMachine
    from triclinium_core.environment import EnvironmentOptions, read_environment
    from triclinium_core.kv.operation.durability import DurabilityLevel
    from triclinium_core.options import (
        Authenticator,
        CertificateAuthenticator,
        ClientOptions,
        JwtAuthenticator,
        PasswordAuthenticator,
        TimeoutOptions,
    )
    from triclinium_core.profiles import apply_profile
    from triclinium_core.retry.backoff import controlled, exponential
    from triclinium_core.retry.couchbase.circuit_breaker import CircuitBreakerOptions
    from triclinium_core.retry.couchbase.retry_machine import RetryMachine
    from triclinium_core.retry.couchbase.strategy import (
        AsyncRetryStrategy,
        BestEffortRetryStrategy,
        ErrorMapRetryStrategy,
        FastFailOnTerminalErrorRetryStrategy,
        RetryAction,
        RetryRequest,
        RetryStrategy,
    )
    from triclinium_core.retry.couchbase.tables.reasons import RetryReason
    from triclinium_core.transcoding.transcoder import (
        EncodedValue,
        JsonTranscoder,
        RawBinaryTranscoder,
        RawJsonTranscoder,
        RawStringTranscoder,
        Transcoder,
    )

_MODULE_OF = {
    "__version__": "triclinium_core._version",
    "AsyncRetryStrategy": "triclinium_core.retry.couchbase.strategy",
    "Authenticator": "triclinium_core.options",
    "BestEffortRetryStrategy": "triclinium_core.retry.couchbase.strategy",
    "CertificateAuthenticator": "triclinium_core.options",
    "CircuitBreakerOptions": "triclinium_core.retry.couchbase.circuit_breaker",
    "ClientMachine": "triclinium_core.client.client_machine",
    "ClientOptions": "triclinium_core.options",
    "DurabilityLevel": "triclinium_core.kv.operation.durability",
    "Duration": "triclinium_core.checks",
    "EncodedValue": "triclinium_core.transcoding.transcoder",
    "EnvironmentOptions": "triclinium_core.environment",
    "ErrorMapRetryStrategy": "triclinium_core.retry.couchbase.strategy",
    "FastFailOnTerminalErrorRetryStrategy": "triclinium_core.retry.couchbase.strategy",
    "JsonTranscoder": "triclinium_core.transcoding.transcoder",
    "JwtAuthenticator": "triclinium_core.options",
    "PasswordAuthenticator": "triclinium_core.options",
    "RawBinaryTranscoder": "triclinium_core.transcoding.transcoder",
    "RawJsonTranscoder": "triclinium_core.transcoding.transcoder",
    "RawStringTranscoder": "triclinium_core.transcoding.transcoder",
    "RetryAction": "triclinium_core.retry.couchbase.strategy",
    "RetryMachine": "triclinium_core.retry.couchbase.retry_machine",
    "RetryReason": "triclinium_core.retry.couchbase.tables.reasons",
    "RetryRequest": "triclinium_core.retry.couchbase.strategy",
    "RetryStrategy": "triclinium_core.retry.couchbase.strategy",
    "TimeoutOptions": "triclinium_core.options",
    "Transcoder": "triclinium_core.transcoding.transcoder",
    "apply_profile": "triclinium_core.profiles",
    "controlled": "triclinium_core.retry.backoff",
    "exponential": "triclinium_core.retry.backoff",
    "implementation": "triclinium_core._speedups",
    "read_environment": "triclinium_core.environment",
    "use_implementation": "triclinium_core._speedups",
}


if not TYPE_CHECKING:  # A type checker that sees ``__getattr__`` accepts misspelt names.
    __getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)


__all__ = [
    "AsyncRetryStrategy",
    "Authenticator",
    "BestEffortRetryStrategy",
    "CertificateAuthenticator",
    "CircuitBreakerOptions",
    "ClientMachine",
    "ClientOptions",
    "DurabilityLevel",
    "Duration",
    "EncodedValue",
    "EnvironmentOptions",
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
    "__version__",
    "apply_profile",
    "controlled",
    "exponential",
    "implementation",
    "read_environment",
    "use_implementation",
]
