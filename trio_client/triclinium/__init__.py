"""A Couchbase client for Trio: structured concurrency outside, a pure state machine inside."""

from __future__ import annotations

from triclinium import errors as errors
from triclinium._cluster import Cluster as Cluster
from triclinium._collection.binary import BinaryCollection as BinaryCollection
from triclinium._collection.collection import Collection as Collection
from triclinium._collection.replicas import ReplicaResults as ReplicaResults
from triclinium._collection.scans import ScanResults as ScanResults
from triclinium._collection_manager import CollectionManager as CollectionManager
from triclinium._context import client_context as client_context, retrying as retrying
from triclinium._deadlines import AbandonedOperation as AbandonedOperation, fail_after as fail_after
from triclinium._driver.subscriptions import TopologyChanges as TopologyChanges
from triclinium._keyspace import Bucket as Bucket, Scope as Scope
from triclinium._open_cluster import (
    ClusterArguments as ClusterArguments,
    open_cluster as open_cluster,
    run_cluster as run_cluster,
)
from triclinium._retry.attempts import Attempt as Attempt, Attempts as Attempts, attempts as attempts
from triclinium._retry.retry import retried as retried, retry as retry
from triclinium._retry.strategies import (
    AdaptiveRetryStrategy as AdaptiveRetryStrategy,
    SimpleRetryStrategy as SimpleRetryStrategy,
    StandardRetryStrategy as StandardRetryStrategy,
)
from triclinium._retry.watching import watching_retries as watching_retries
from triclinium_core.checks import Duration as Duration
from triclinium_core.kv.health.statistics import (
    ClientStatistics as ClientStatistics,
    ConnectionStatistics as ConnectionStatistics,
    ServerTimeStatistics as ServerTimeStatistics,
)
from triclinium_core.kv.operation.durability import DurabilityLevel as DurabilityLevel
from triclinium_core.kv.operation.manifest.types import CollectionSpec as CollectionSpec, ScopeSpec as ScopeSpec
from triclinium_core.kv.operation.reports import (
    ClusterState as ClusterState,
    DiagnosticsResult as DiagnosticsResult,
    EndpointDiagnostics as EndpointDiagnostics,
    EndpointPingReport as EndpointPingReport,
    EndpointState as EndpointState,
    PingResult as PingResult,
    PingState as PingState,
)
from triclinium_core.kv.operation.results import (
    Cas as Cas,
    CounterResult as CounterResult,
    ExistsResult as ExistsResult,
    GetReplicaResult as GetReplicaResult,
    GetResult as GetResult,
    LookupInReplicaResult as LookupInReplicaResult,
    LookupInResult as LookupInResult,
    MutateInResult as MutateInResult,
    MutationResult as MutationResult,
    MutationToken as MutationToken,
    ScanResult as ScanResult,
)
from triclinium_core.kv.operation.scan.types import (
    PrefixScan as PrefixScan,
    RangeScan as RangeScan,
    SamplingScan as SamplingScan,
    ScanTerm as ScanTerm,
    ScanType as ScanType,
)
from triclinium_core.kv.operation.subdocument.specs import (
    LookupInMacro as LookupInMacro,
    LookupInSpec as LookupInSpec,
    MutateInSpec as MutateInSpec,
    MutationMacro as MutationMacro,
    StoreSemantics as StoreSemantics,
)
from triclinium_core.kv.topology.topology import (
    Topology as Topology,
    TopologyChange as TopologyChange,
    TopologyNode as TopologyNode,
)
from triclinium_core.options import (
    Authenticator as Authenticator,
    CertificateAuthenticator as CertificateAuthenticator,
    JwtAuthenticator as JwtAuthenticator,
    PasswordAuthenticator as PasswordAuthenticator,
    TimeoutOptions as TimeoutOptions,
)
from triclinium_core.retry.backoff import exponential as exponential
from triclinium_core.retry.calls.history import (
    AttemptRecord as AttemptRecord,
    RetryEnding as RetryEnding,
    attempts_of as attempts_of,
)
from triclinium_core.retry.calls.reports import (
    RetryGivenUp as RetryGivenUp,
    RetryHook as RetryHook,
    RetryReport as RetryReport,
    RetryScheduled as RetryScheduled,
    RetrySucceeded as RetrySucceeded,
)
from triclinium_core.retry.calls.retryable import RetryOn as RetryOn
from triclinium_core.retry.couchbase.circuit_breaker import (
    BreakerStatistics as BreakerStatistics,
    CircuitBreakerOptions as CircuitBreakerOptions,
)
from triclinium_core.retry.couchbase.strategy import (
    AnyRetryStrategy as AnyRetryStrategy,
    AsyncRetryStrategy as AsyncRetryStrategy,
    BestEffortRetryStrategy as BestEffortRetryStrategy,
    ErrorMapRetryStrategy as ErrorMapRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy as FastFailOnTerminalErrorRetryStrategy,
    RetryAction as RetryAction,
    RetryRequest as RetryRequest,
    RetryStrategy as RetryStrategy,
)
from triclinium_core.retry.couchbase.tables.reasons import RetryReason as RetryReason
from triclinium_core.retry.couchbase.tables.service import Service as Service
from triclinium_core.retry.smithy.classification import ErrorInfo as ErrorInfo
from triclinium_core.retry.smithy.numbers import AwsRetryNumbers as AwsRetryNumbers
from triclinium_core.transcoding.transcoder import (
    EncodedValue as EncodedValue,
    JsonTranscoder as JsonTranscoder,
    RawBinaryTranscoder as RawBinaryTranscoder,
    RawJsonTranscoder as RawJsonTranscoder,
    RawStringTranscoder as RawStringTranscoder,
    Transcoder as Transcoder,
)
