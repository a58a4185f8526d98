/** Couchbase client for Node. Durations are in milliseconds, except those of documents, which are in seconds. */

/** Version of a document. */
export type Cas = bigint;

/** Error of a call on a closed cluster, or of one that waits when the cluster closes. */
export class ClosedError extends Error {}

/** Facts about a failed request. Facts that are unknown or do not apply are absent. */
export interface ErrorContext {
  readonly service: string;
  readonly operation?: string;
  readonly idempotent?: boolean;
  readonly bucket?: string;
  readonly scope?: string;
  readonly collection?: string;
  readonly key?: string;
  readonly status?: number;
  readonly statusName?: string;
  readonly statusText?: string;
  readonly path?: string;
  readonly pathIndex?: number;
  readonly pathStatus?: number;
  readonly httpStatus?: number;
  readonly errorCode?: number;
  readonly errorMessage?: string;
  readonly clientContextId?: string;
  readonly statement?: string;
  readonly lastDispatchedTo?: string;
  readonly lastDispatchedFrom?: string;
  readonly lastDispatchError?: string;
  readonly retryAttempts: number;
  readonly retryReasons?: readonly string[];
  readonly refusedReason?: string;
  /** Seconds from the submission to the failure. */
  readonly elapsed?: number;
  /** Timeout of the request in seconds. */
  readonly timeout?: number;
  readonly [fact: string]: unknown;
}

/** Classes of the errors that calls reject with, in the tree of SDK-RFC 0058. */
export namespace errors {
  class CouchbaseException extends Error {
    readonly context: ErrorContext;
  }
  class TimeoutException extends CouchbaseException {}
  class AmbiguousTimeoutException extends TimeoutException {}
  class UnambiguousTimeoutException extends TimeoutException {}
  class RequestCanceledException extends CouchbaseException {}
  class BucketAccessException extends CouchbaseException {}
  class TlsException extends CouchbaseException {}
  class InvalidArgumentException extends CouchbaseException {
    /** Name of the invalid argument; empty if the error concerns several. */
    readonly parameter?: string;
  }
  class ServiceNotAvailableException extends CouchbaseException {}
  class InternalServerFailureException extends CouchbaseException {}
  class AuthenticationFailureException extends CouchbaseException {}
  class TemporaryFailureException extends CouchbaseException {}
  class ParsingFailureException extends CouchbaseException {}
  class CasMismatchException extends CouchbaseException {}
  class BucketNotFoundException extends CouchbaseException {}
  class CollectionNotFoundException extends CouchbaseException {}
  class UnsupportedOperationException extends CouchbaseException {}
  class FeatureNotAvailableException extends CouchbaseException {}
  class ScopeNotFoundException extends CouchbaseException {}
  class IndexNotFoundException extends CouchbaseException {}
  class IndexExistsException extends CouchbaseException {}
  class EncodingFailureException extends CouchbaseException {}
  class DecodingFailureException extends CouchbaseException {}
  class RateLimitedException extends CouchbaseException {}
  class QuotaLimitedException extends CouchbaseException {}
  class KeyValueException extends CouchbaseException {}
  class DocumentNotFoundException extends KeyValueException {}
  class DocumentUnretrievableException extends KeyValueException {}
  class DocumentLockedException extends KeyValueException {}
  class ValueTooLargeException extends KeyValueException {}
  class DocumentExistsException extends KeyValueException {}
  class DurabilityLevelNotAvailableException extends KeyValueException {}
  class DurabilityImpossibleException extends KeyValueException {}
  class DurabilityAmbiguousException extends KeyValueException {}
  class DurableWriteInProgressException extends KeyValueException {}
  class DurableWriteReCommitInProgressException extends KeyValueException {}
  class PathNotFoundException extends KeyValueException {}
  class PathMismatchException extends KeyValueException {}
  class PathInvalidException extends KeyValueException {}
  class PathTooBigException extends KeyValueException {}
  class PathTooDeepException extends KeyValueException {}
  class ValueTooDeepException extends KeyValueException {}
  class ValueInvalidException extends KeyValueException {}
  class DocumentNotJsonException extends KeyValueException {}
  class NumberTooBigException extends KeyValueException {}
  class DeltaInvalidException extends KeyValueException {}
  class PathExistsException extends KeyValueException {}
  class XattrUnknownMacroException extends KeyValueException {}
  class XattrInvalidKeyComboException extends KeyValueException {}
  class XattrUnknownVirtualAttributeException extends KeyValueException {}
  class XattrCannotModifyVirtualAttributeException extends KeyValueException {}
  class XattrNoAccessException extends KeyValueException {}
  class DocumentNotLockedException extends KeyValueException {}
  class PlanningFailureException extends CouchbaseException {}
  class IndexFailureException extends CouchbaseException {}
  class PreparedStatementFailureException extends CouchbaseException {}
  class DmlFailureException extends CouchbaseException {}
  class CompilationFailureException extends CouchbaseException {}
  class JobQueueFullException extends CouchbaseException {}
  class DatasetNotFoundException extends CouchbaseException {}
  class DataverseNotFoundException extends CouchbaseException {}
  class DatasetExistsException extends CouchbaseException {}
  class DataverseExistsException extends CouchbaseException {}
  class LinkNotFoundException extends CouchbaseException {}
  class LinkExistsException extends CouchbaseException {}
  class IndexNotReadyException extends CouchbaseException {}
  class ViewNotFoundException extends CouchbaseException {}
  class DesignDocumentNotFoundException extends CouchbaseException {}
  class CollectionExistsException extends CouchbaseException {}
  class ScopeExistsException extends CouchbaseException {}
  class UserNotFoundException extends CouchbaseException {}
  class GroupNotFoundException extends CouchbaseException {}
  class BucketExistsException extends CouchbaseException {}
  class UserExistsException extends CouchbaseException {}
  class BucketNotFlushableException extends CouchbaseException {}
  class InternalError extends CouchbaseException {}
}

/** Name of a retry strategy. The default is `FastFailOnTerminalErrorRetryStrategy`. */
export type RetryStrategyName =
  | "BestEffortRetryStrategy"
  | "FastFailOnTerminalErrorRetryStrategy"
  | "ErrorMapRetryStrategy"
  | "FailFastRetryStrategy";

export type DurabilityLevel = "none" | "majority" | "majorityAndPersistToActive" | "persistToMajority";

/** Lifetime of a document in seconds, the date on which it expires, or null for a document that never expires. */
export type Expiry = number | Date | null;

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call, which rejects with the reason. A write may have been applied. */
  signal?: AbortSignal;
  /** Maximum duration in milliseconds, beside the timeouts of the cluster. For a query: of each wait for rows. */
  timeout?: number;
  /** Retry strategy of this call instead of that of the cluster. */
  retryStrategy?: RetryStrategyName;
}

export interface MutationOptions extends CallOptions {
  durability?: DurabilityLevel;
}

export interface StoreOptions extends MutationOptions {
  expiry?: Expiry;
}

export interface UpsertOptions extends StoreOptions {
  preserveExpiry?: boolean;
}

export interface RemoveOptions extends MutationOptions {
  /** Version that the document must have. Default: any. */
  cas?: Cas;
}

export interface ReplaceOptions extends UpsertOptions {
  cas?: Cas;
}

export interface ConcatenateOptions extends MutationOptions {
  cas?: Cas;
}

export interface CounterOptions extends StoreOptions {
  /** Number to add or subtract. Default: 1. */
  delta?: number | bigint;
  /** Value of a new counter. Without it, the document must exist. */
  initial?: number | bigint;
}

export interface LookupInOptions extends CallOptions {
  accessDeleted?: boolean;
}

export interface MutateInOptions extends ReplaceOptions {
  /** Whether the document must exist. Default: "replace", so it must. */
  storeSemantics?: "replace" | "upsert" | "insert";
  accessDeleted?: boolean;
  createAsDeleted?: boolean;
}

/** Position of a mutation in the history of its vbucket. */
export interface MutationToken {
  readonly bucket: string;
  readonly vbucket: number;
  readonly vbucketUuid: bigint;
  readonly sequenceNumber: bigint;
}

export interface GetResult {
  readonly cas: Cas;
  /** Stored bytes. */
  readonly bytes: Uint8Array;
  /** The document: parsed JSON, a string or bytes, as its writer has marked it. */
  readonly content: any;
}

export interface MutationResult {
  readonly cas: Cas;
  readonly mutationToken?: MutationToken;
}

export interface ExistsResult {
  readonly exists: boolean;
  readonly cas: Cas;
}

export interface CounterResult extends MutationResult {
  readonly content: bigint;
}

/** Value at a path, or the error of the path. */
export interface PathResult<Value = any> {
  readonly value?: Value;
  readonly error?: errors.CouchbaseException;
}

export interface LookupInResult {
  readonly cas: Cas;
  readonly isDeleted: boolean;
  /** Outcomes of the specs, in their order. */
  readonly content: readonly PathResult[];
}

export interface MutateInResult extends MutationResult {
  readonly isDeleted: boolean;
  /** New numbers of the counters, in the order of the specs; without a value for other specs. */
  readonly content: readonly PathResult<bigint>[];
}

export interface LookupInSpec {
  op: "get" | "exists" | "count";
  path: string;
  xattr?: boolean;
}

interface PathOptions {
  path: string;
  xattr?: boolean;
}

interface CreatingOptions extends PathOptions {
  createParents?: boolean;
}

/** Value that the server computes when it applies the mutation. It implies `xattr`. */
export type MutationMacro = "cas" | "seqNo" | "valueCrc32c";

export type MutateInSpec =
  | (CreatingOptions & { op: "insert" | "upsert" } & ({ value: unknown } | { macro: MutationMacro }))
  | (PathOptions & { op: "replace" } & ({ value: unknown } | { macro: MutationMacro }))
  | (PathOptions & { op: "remove" })
  | (CreatingOptions & { op: "arrayAppend" | "arrayPrepend"; values: readonly unknown[] })
  | (PathOptions & { op: "arrayInsert"; values: readonly unknown[] })
  | (CreatingOptions & { op: "arrayAddUnique"; value: string | number | boolean | null })
  | (CreatingOptions & { op: "increment" | "decrement"; delta?: number | bigint });

/** Documents of a collection. A call rejects with one of `errors`, a `ClosedError`, or the reason of its signal. */
export interface Collection {
  get(key: string, options?: CallOptions): Promise<GetResult>;
  exists(key: string, options?: CallOptions): Promise<ExistsResult>;
  getAndTouch(key: string, expiry: Expiry, options?: CallOptions): Promise<GetResult>;
  /** Lock a document for some seconds, at most 30. */
  getAndLock(key: string, lockTime: number, options?: CallOptions): Promise<GetResult>;
  unlock(key: string, cas: Cas, options?: CallOptions): Promise<void>;
  touch(key: string, expiry: Expiry, options?: CallOptions): Promise<MutationResult>;
  remove(key: string, options?: RemoveOptions): Promise<MutationResult>;
  /** Write a document: bytes if `value` is a Uint8Array, otherwise JSON. */
  insert(key: string, value: unknown, options?: StoreOptions): Promise<MutationResult>;
  upsert(key: string, value: unknown, options?: UpsertOptions): Promise<MutationResult>;
  replace(key: string, value: unknown, options?: ReplaceOptions): Promise<MutationResult>;
  append(key: string, bytes: Uint8Array | string, options?: ConcatenateOptions): Promise<MutationResult>;
  prepend(key: string, bytes: Uint8Array | string, options?: ConcatenateOptions): Promise<MutationResult>;
  increment(key: string, options?: CounterOptions): Promise<CounterResult>;
  decrement(key: string, options?: CounterOptions): Promise<CounterResult>;
  lookupIn(key: string, specs: readonly LookupInSpec[], options?: LookupInOptions): Promise<LookupInResult>;
  mutateIn(key: string, specs: readonly MutateInSpec[], options?: MutateInOptions): Promise<MutateInResult>;
}

export interface QueryOptions extends CallOptions {
  /** Values for `?` and `$1`, or by name for `$name`. */
  parameters?: readonly unknown[] | Readonly<Record<string, unknown>>;
  /** Whether the service refuses a statement that changes anything. Such a query may be retried at any time. */
  readonly?: boolean;
  /** Whether to plan the statement for each execution. Default: true. */
  adhoc?: boolean;
  scanConsistency?: "notBounded" | "requestPlus";
  consistentWith?: readonly MutationToken[];
  metrics?: boolean;
  profile?: "off" | "phases" | "timings";
  flexIndex?: boolean;
  preserveExpiry?: boolean;
  useReplica?: boolean;
  clientContextId?: string;
  maxParallelism?: number;
  pipelineBatch?: number;
  pipelineCap?: number;
  scanCap?: number;
  /** Maximum time in seconds that the query waits for indexes. */
  scanWait?: number;
  /** Options of the service that this client does not know. */
  raw?: Readonly<Record<string, unknown>>;
}

export interface QueryMetaData {
  readonly requestId: string;
  readonly clientContextId: string;
  readonly status: string;
  readonly warnings: readonly { readonly code: number; readonly message: string }[];
  readonly metrics: {
    /** Seconds. */
    readonly elapsedTime: number;
    readonly executionTime: number;
    readonly sortCount: number;
    readonly resultCount: number;
    readonly resultSize: number;
    readonly mutationCount: number;
    readonly errorCount: number;
    readonly warningCount: number;
  };
  readonly signature?: unknown;
  readonly profile?: unknown;
}

/** Rows of a query. Iterating, once, sends the statement and reads rows as the loop needs them. */
export interface QueryResult<Row = any> extends AsyncIterable<Row> {
  /** Metadata; undefined before the end of the rows. */
  readonly metaData?: QueryMetaData;
}

export interface Scope {
  collection(name: string): Collection;
  /** Send a statement that finds the collections of this scope by name. */
  query<Row = any>(statement: string, options?: QueryOptions): QueryResult<Row>;
}

export interface Bucket {
  scope(name: string): Scope;
  /** A collection of the default scope. */
  collection(name: string): Collection;
  defaultCollection(): Collection;
}

export interface Cluster extends AsyncDisposable {
  bucket(name: string): Bucket;
  /** The only collection of a plain memcached, which has no buckets. */
  defaultCollection(): Collection;
  query<Row = any>(statement: string, options?: QueryOptions): QueryResult<Row>;
  /** Close all connections. Calls that wait reject with a `ClosedError`. */
  close(): Promise<void>;
}

/** Timeouts in milliseconds; `Infinity` for no limit. */
export interface Timeouts {
  kv?: number;
  kvDurable?: number;
  connect?: number;
  query?: number;
  keepAliveInterval?: number;
  keepAlive?: number;
  idleHttpConnection?: number;
  configPollInterval?: number;
  configPollFloor?: number;
}

export interface ClusterOptions {
  username?: string;
  password?: string;
  /**
   * Options of `tls.connect`, such as `ca`, and `cert` and `key` for a client certificate. Certificates and host names
   * are verified unless `rejectUnauthorized` is false.
   */
  tls?: import("node:tls").ConnectionOptions;
  /** Receives the reports of the client. Default: none. */
  log?: (level: "debug" | "info" | "warning" | "error", text: string) => void;
  timeouts?: Timeouts;
  retryStrategy?: RetryStrategyName;
  /** Whether documents may be sent compressed, after the first compressed response. Default: true. */
  compression?: boolean;
  network?: string;
  enableDnsSrv?: boolean;
  dnsSrvDomains?: readonly string[];
  maxHttpConnections?: number;
}

/** Open a cluster. It does not wait for a connection: the first operation reports connection problems. */
export function openCluster(connectionString: string, options?: ClusterOptions): Promise<Cluster>;
