"""Couchbase client for Trio: structured concurrency outside, a pure state machine inside."""

from __future__ import annotations

from triclinium import errors
from triclinium._cluster import Cluster
from triclinium._cluster_driver.resolver import DnsResolver
from triclinium._cluster_driver.subscriptions import TopologyChanges
from triclinium._collection.binary import BinaryCollection
from triclinium._collection.collection import Collection
from triclinium._collection.replicas import ReplicaResults
from triclinium._collection.scans import ScanResults
from triclinium._context import client_context, retrying
from triclinium._deadlines import AbandonedOperation, fail_after
from triclinium._from_environment import open_cluster_from_environment
from triclinium._keyspace import Bucket, Scope
from triclinium._management.buckets import BucketManager
from triclinium._management.collections import CollectionManager
from triclinium._management.query_indexes import CollectionQueryIndexManager, QueryIndexManager
from triclinium._management.search_indexes import SearchIndexManager
from triclinium._management.users import UserManager
from triclinium._open_cluster import ClusterArguments, open_cluster, run_cluster
from triclinium._retry.attempts import Attempt, Attempts, attempts
from triclinium._retry.retry import retried, retry
from triclinium._retry.strategies import AdaptiveRetryStrategy, SimpleRetryStrategy, StandardRetryStrategy
from triclinium._retry.tracing import tracing_retries
from triclinium._retry.watching import watching_retries
from triclinium._services.analytics import AnalyticsResult
from triclinium._services.query import QueryResult
from triclinium._version import __version__
from triclinium_core.checks import Duration
from triclinium_core.client.health.statistics import (
    ClientStatistics,
    ConnectionStatistics,
    EndpointStatistics,
    ServerTimeStatistics,
)
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.manifest.collections_manifest import CollectionSpec, ScopeSpec
from triclinium_core.kv.operation.reports import (
    ClusterState,
    DiagnosticsResult,
    EndpointDiagnostics,
    EndpointPingReport,
    EndpointState,
    PingResult,
    PingState,
)
from triclinium_core.kv.operation.results import (
    Cas,
    CounterResult,
    ExistsResult,
    GetReplicaResult,
    GetResult,
    LookupInReplicaResult,
    LookupInResult,
    MutateInResult,
    MutationResult,
    MutationToken,
    ScanResult,
)
from triclinium_core.kv.operation.scan.scans import PrefixScan, RangeScan, SamplingScan, ScanTerm, ScanType
from triclinium_core.kv.operation.subdocument.specs import (
    LookupInMacro,
    LookupInSpec,
    MutateInSpec,
    MutationMacro,
    StoreSemantics,
)
from triclinium_core.kv.topology.topology import Topology, TopologyChange, TopologyNode
from triclinium_core.options import (
    Authenticator,
    CertificateAuthenticator,
    JwtAuthenticator,
    PasswordAuthenticator,
    TimeoutOptions,
)
from triclinium_core.profiles import apply_profile
from triclinium_core.retry.backoff import exponential
from triclinium_core.retry.calls import (
    AttemptRecord,
    RetryEnding,
    RetryGivenUp,
    RetryHook,
    RetryOn,
    RetryReport,
    RetryScheduled,
    RetrySucceeded,
    attempts_of,
)
from triclinium_core.retry.combined.reason_infos import FailedAttemptError
from triclinium_core.retry.combined.strategies import AnyRetryStrategy, TokenScope
from triclinium_core.retry.couchbase import (
    AsyncRetryStrategy,
    BestEffortRetryStrategy,
    BreakerStatistics,
    CircuitBreakerOptions,
    ErrorMapRetryStrategy,
    FastFailOnTerminalErrorRetryStrategy,
    RetryAction,
    RetryReason,
    RetryRequest,
    RetryStrategy,
    Service,
)
from triclinium_core.retry.smithy import AwsRetryNumbers, ErrorInfo
from triclinium_core.services.analytics.analytics_request import AnalyticsScanConsistency
from triclinium_core.services.analytics.result import (
    AnalyticsMetaData,
    AnalyticsMetrics,
    AnalyticsStatus,
    AnalyticsWarning,
)
from triclinium_core.services.management.buckets import (
    BucketSettings,
    BucketType,
    CompressionMode,
    ConflictResolutionType,
    CreateBucketSettings,
    EvictionPolicy,
    StorageBackend,
)
from triclinium_core.services.management.collections import CreateCollectionSettings, UpdateCollectionSettings
from triclinium_core.services.management.query_indexes import QueryIndex, QueryIndexType
from triclinium_core.services.management.search_indexes import SearchIndex
from triclinium_core.services.management.users import (
    AuthDomain,
    Group,
    Origin,
    Role,
    RoleAndDescription,
    RoleAndOrigins,
    User,
    UserAndMetadata,
)
from triclinium_core.services.mutation_state import MutationState
from triclinium_core.services.query.query_request import QueryProfile, QueryScanConsistency
from triclinium_core.services.query.result import QueryMetaData, QueryMetrics, QueryStatus, QueryWarning
from triclinium_core.telemetry.defaults import LoggingMeter, OrphanReporter, ThresholdLoggingTracer
from triclinium_core.telemetry.metrics import Meter, ValueRecorder
from triclinium_core.telemetry.tracing import RequestSpan, RequestTracer, StatusCode
from triclinium_core.transcoding.transcoder import (
    EncodedValue,
    JsonTranscoder,
    RawBinaryTranscoder,
    RawJsonTranscoder,
    RawStringTranscoder,
    Transcoder,
)

__all__ = [
    "AbandonedOperation",
    "AdaptiveRetryStrategy",
    "AnalyticsMetaData",
    "AnalyticsMetrics",
    "AnalyticsResult",
    "AnalyticsScanConsistency",
    "AnalyticsStatus",
    "AnalyticsWarning",
    "AnyRetryStrategy",
    "AsyncRetryStrategy",
    "Attempt",
    "AttemptRecord",
    "Attempts",
    "AuthDomain",
    "Authenticator",
    "AwsRetryNumbers",
    "BestEffortRetryStrategy",
    "BinaryCollection",
    "BreakerStatistics",
    "Bucket",
    "BucketManager",
    "BucketSettings",
    "BucketType",
    "Cas",
    "CertificateAuthenticator",
    "CircuitBreakerOptions",
    "ClientStatistics",
    "Cluster",
    "ClusterArguments",
    "ClusterState",
    "Collection",
    "CollectionManager",
    "CollectionQueryIndexManager",
    "CollectionSpec",
    "CompressionMode",
    "ConflictResolutionType",
    "ConnectionStatistics",
    "CounterResult",
    "CreateBucketSettings",
    "CreateCollectionSettings",
    "DiagnosticsResult",
    "DnsResolver",
    "DurabilityLevel",
    "Duration",
    "EncodedValue",
    "EndpointDiagnostics",
    "EndpointPingReport",
    "EndpointState",
    "EndpointStatistics",
    "ErrorInfo",
    "ErrorMapRetryStrategy",
    "EvictionPolicy",
    "ExistsResult",
    "FailedAttemptError",
    "FastFailOnTerminalErrorRetryStrategy",
    "GetReplicaResult",
    "GetResult",
    "Group",
    "JsonTranscoder",
    "JwtAuthenticator",
    "LoggingMeter",
    "LookupInMacro",
    "LookupInReplicaResult",
    "LookupInResult",
    "LookupInSpec",
    "Meter",
    "MutateInResult",
    "MutateInSpec",
    "MutationMacro",
    "MutationResult",
    "MutationState",
    "MutationToken",
    "Origin",
    "OrphanReporter",
    "PasswordAuthenticator",
    "PingResult",
    "PingState",
    "PrefixScan",
    "QueryIndex",
    "QueryIndexManager",
    "QueryIndexType",
    "QueryMetaData",
    "QueryMetrics",
    "QueryProfile",
    "QueryResult",
    "QueryScanConsistency",
    "QueryStatus",
    "QueryWarning",
    "RangeScan",
    "RawBinaryTranscoder",
    "RawJsonTranscoder",
    "RawStringTranscoder",
    "ReplicaResults",
    "RequestSpan",
    "RequestTracer",
    "RetryAction",
    "RetryEnding",
    "RetryGivenUp",
    "RetryHook",
    "RetryOn",
    "RetryReason",
    "RetryReport",
    "RetryRequest",
    "RetryScheduled",
    "RetryStrategy",
    "RetrySucceeded",
    "Role",
    "RoleAndDescription",
    "RoleAndOrigins",
    "SamplingScan",
    "ScanResult",
    "ScanResults",
    "ScanTerm",
    "ScanType",
    "Scope",
    "ScopeSpec",
    "SearchIndex",
    "SearchIndexManager",
    "ServerTimeStatistics",
    "Service",
    "SimpleRetryStrategy",
    "StandardRetryStrategy",
    "StatusCode",
    "StorageBackend",
    "StoreSemantics",
    "ThresholdLoggingTracer",
    "TimeoutOptions",
    "TokenScope",
    "Topology",
    "TopologyChange",
    "TopologyChanges",
    "TopologyNode",
    "Transcoder",
    "UpdateCollectionSettings",
    "User",
    "UserAndMetadata",
    "UserManager",
    "ValueRecorder",
    "__version__",
    "apply_profile",
    "attempts",
    "attempts_of",
    "client_context",
    "errors",
    "exponential",
    "fail_after",
    "open_cluster",
    "open_cluster_from_environment",
    "retried",
    "retry",
    "retrying",
    "run_cluster",
    "tracing_retries",
    "watching_retries",
]
