// Couchbase client for Node. Its core is Python, which Pyodide runs inside this process.

import { ClosedError, Driver } from "./driver.mjs";
import { assets, startPython } from "./python.mjs";

export { ClosedError };

const snake = (name) => String(name).replace(/[A-Z]/g, (letter) => "_" + letter.toLowerCase());
const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
const changed = (object, change) => Object.fromEntries(Object.entries(object).map(change));
const camelKeys = (object) => changed(object, ([name, value]) => [camel(name), value]);

// Classes of the core's exceptions, by name.
export const errors = {};
for (const [name, base] of Object.entries(assets.errors)) {
  errors[name] = { [name]: class extends (errors[base] ?? Error) {} }[name];
  errors[name].prototype.name = name;
}

function asError([name, message, context, parameter], options) {
  const error = Object.assign(new errors[name](message, options), { context: camelKeys(JSON.parse(context)) });
  return parameter ? Object.assign(error, { parameter: camel(parameter) }) : error;
}

function invalid(parameter, message, options, kind = "InvalidArgumentException") {
  return asError([kind, `${parameter} ${message}`, "{}", parameter], options);
}

// -- Values.

const UTF_8 = new TextDecoder("utf-8", { fatal: true });
const FORMATS = { 3: (bytes) => bytes, 4: (bytes) => UTF_8.decode(bytes) }; // By common format; all others are JSON.

function json(parameter, value) {
  try {
    const text = JSON.stringify(value);
    if (text !== undefined) return text;
    throw new TypeError(`it is ${typeof value}`);
  } catch (cause) {
    throw invalid(parameter, `cannot be written as JSON: ${cause.message}`, { cause }, "EncodingFailureException");
  }
}

function decoded(bytes, decode = (data) => JSON.parse(UTF_8.decode(data))) {
  try {
    return decode(bytes);
  } catch (cause) {
    throw asError(["DecodingFailureException", `the document: ${cause.message}`, "{}", ""], { cause });
  }
}

function asBytes(value) {
  const bytes = typeof value === "string" ? new TextEncoder().encode(value) : value;
  if (!(bytes instanceof Uint8Array)) throw invalid("value", "must be a Uint8Array or a string");
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length); // Pyodide refuses a Buffer.
}

// Encoders of options; all other options are passed unchanged.
const ENCODERS = {
  bytes: asBytes,
  value: (value) => (value instanceof Uint8Array ? asBytes(value) : json("value", value)),
  cas(cas) {
    if (typeof cas === "bigint") return cas;
    throw invalid("cas", `must be a BigInt, such as the cas of a result, not a ${typeof cas}`);
  },
  expiry: (expiry) => (expiry instanceof Date ? (expiry - Date.now()) / 1000 : (expiry ?? false)),
  specs(specs) {
    if (!Array.isArray(specs)) throw invalid("specs", "must be an array");
    return specs.map((spec) => {
      const { value, values = value === undefined ? [] : [value], ...others } = spec ?? {};
      const change = ([name, each]) => [snake(name), ["op", "macro"].includes(name) ? snake(each) : each];
      return { ...changed(others, change), values: values.map((each) => json("value", each)) };
    });
  },
  parameters(given) {
    if (typeof given !== "object") throw invalid("parameters", "must be an array or an object");
    const texts = Object.values(given).map((each) => json("parameters", each));
    return Array.isArray(given) ? [texts, [], []] : [[], Object.keys(given), texts];
  },
  raw: (given) => changed(given, ([name, value]) => [name, json("raw", value)]),
  consistentWith: (tokens) => tokens.map((token) => changed(token, ([name, value]) => [snake(name), value])),
  durability: snake,
  profile: snake,
  scanConsistency: snake,
};

function encodedOption(name, value) {
  try {
    return name in ENCODERS ? ENCODERS[name](value) : value;
  } catch (cause) {
    if (cause instanceof errors.CouchbaseException) throw cause;
    throw invalid(name, `has the wrong type: ${cause.message}`, { cause });
  }
}

function encoded(given) {
  const isGiven = ([name, value]) => value !== undefined && (value !== null || name === "expiry" || name === "value");
  const change = ([name, value]) => [name === "bytes" ? "value" : snake(name), encodedOption(name, value)];
  return Object.fromEntries(Object.entries(given).filter(isGiven).map(change));
}

class GetResult {
  #format;

  constructor(cas, format, bytes) {
    Object.assign(this, { cas: BigInt(cas), bytes });
    this.#format = format;
  }

  // The document: JSON, a string or bytes, as its writer has marked it.
  get content() {
    return decoded(this.bytes, FORMATS[this.#format]);
  }
}

function asResult(kind, ...fields) {
  if (kind === "GetResult") return new GetResult(...fields);
  if (kind === "Done") return undefined;
  const { values, ...result } = camelKeys(fields[0]);
  if (result.cas !== undefined) result.cas = BigInt(result.cas);
  if (result.mutationToken) {
    const token = (result.mutationToken = camelKeys(result.mutationToken));
    for (const name of ["vbucketUuid", "sequenceNumber"]) token[name] = BigInt(token[name]);
  }
  if (result.metrics) result.metrics = camelKeys(result.metrics);
  if (kind === "CounterResult") result.content = BigInt(result.content);
  const decode = kind === "MutateInResult" ? (bytes) => BigInt(UTF_8.decode(bytes)) : undefined; // Only counters.
  const shown = (each) => (Array.isArray(each) ? { error: asError(each) } : { value: each && decoded(each, decode) });
  if (values) result.content = values.map(shown);
  return result;
}

// -- Calls.

// Start a query or an operation with `run`, which gets what submits it and the options of the wait.
function submit(driver, run, kind, place, given = {}) {
  if (typeof given !== "object" || given === null) throw invalid("options", "must be an object");
  const { signal, timeout, retryStrategy, ...options } = given;
  if (signal && !(signal instanceof AbortSignal)) throw invalid("signal", "must be an AbortSignal");
  if (timeout !== undefined && !(timeout > 0 && typeof timeout === "number"))
    throw invalid("timeout", "must be a number of milliseconds above 0");
  const fields = encoded(options);
  return run((token) => driver.call("submit", token, kind, place, fields, retryStrategy), { signal, timeout });
}

const PARAMETERS = {
  ...{ get: [], exists: [], getAndTouch: ["expiry"], getAndLock: ["lockTime"], unlock: ["cas"], touch: ["expiry"] },
  ...{ insert: ["value"], upsert: ["value"], replace: ["value"], remove: [], append: ["bytes"], prepend: ["bytes"] },
  ...{ increment: [], decrement: [], lookupIn: ["specs"], mutateIn: ["specs"] },
};

class Collection {
  #driver;
  #names;

  constructor(driver, names) {
    this.#driver = driver;
    this.#names = names;
  }

  static {
    for (const [name, [parameter]] of Object.entries(PARAMETERS)) {
      const kind = name[0].toUpperCase() + name.slice(1);
      this.prototype[name] = async function (key, ...values) {
        const options = parameter ? { ...values[1], [parameter]: values[0] } : values[0];
        const wait = (start, waiting) => this.#driver.wait(start, waiting);
        return asResult(...(await submit(this.#driver, wait, kind, [...this.#names, key], options)));
      };
    }
  }
}

// Rows of a query, which is sent when a loop begins, and read as the loop needs them.
class QueryResult {
  #start;

  constructor(start) {
    this.#start = start;
  }

  async *[Symbol.asyncIterator]() {
    const start = this.#start;
    this.#start = undefined;
    if (!start) throw new TypeError("the rows of a query can be read once; send the query again");
    const pieces = start();
    try {
      let next;
      while (!(next = await pieces.next()).done) yield* next.value.map((row) => decoded(row));
      this.metaData = asResult("MetaData", next.value);
    } finally {
      await pieces.return();
    }
  }
}

function query(driver, statement, options, queryContext) {
  const run = (start, waiting) => driver.pieces(start, waiting);
  return new QueryResult(() => submit(driver, run, "QueryRequest", [], { ...options, statement, queryContext }));
}

class Cluster {
  #driver;

  constructor(driver) {
    this.#driver = driver;
  }

  bucket(bucket) {
    const scope = (scope) => ({
      collection: (collection) => new Collection(this.#driver, [bucket, scope, collection]),
      query: (statement, options) => query(this.#driver, statement, options, [bucket, scope]),
    });
    const { collection } = scope("_default");
    return { scope, collection, defaultCollection: () => collection("_default") };
  }

  // The only collection of a plain memcached, which has no buckets.
  defaultCollection() {
    return new Collection(this.#driver, [undefined, "_default", "_default"]);
  }

  query(statement, options) {
    return query(this.#driver, statement, options);
  }

  async close() {
    this.#driver.close();
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }
}

// Open a cluster. The first call of the process starts Python. The first operation reports connection problems.
export async function openCluster(connectionString, { username, password, tls, log, ...options } = {}) {
  const { host } = await startPython();
  const driver = new Driver({ tls, log, asError });
  const isVerified = tls?.rejectUnauthorized !== false && !tls?.checkServerIdentity;
  const hasPassword = username !== undefined || password !== undefined;
  const authenticator = hasPassword ? [username, password] : tls?.cert || tls?.pfx ? [] : undefined;
  if (tls && !/^couchbases:/.test(connectionString)) throw invalid("tls", "has no effect without couchbases://");
  const given = encoded({ ...options, connectionString, authenticator, tlsIsVerified: isVerified });
  const opened = host.open_host(driver, given);
  if (Array.isArray(opened)) throw asError(opened);
  driver.start(opened);
  return new Cluster(driver);
}
