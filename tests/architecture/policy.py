"""Data of the architecture rules. The modules in the same folder implement the rules.

An exception is a row here with its reason. A row of ``TOO_LONG`` or ``PROGRAMS`` that excuses nothing fails its own
test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Distribution(NamedTuple):
    """One wheel of the workspace."""

    folder: str
    package: str

    @property
    def pyproject(self) -> Path:
        """File that declares the distribution."""
        return ROOT / self.folder / "pyproject.toml"

    @property
    def sources(self) -> Path:
        """Folder of its import package."""
        return ROOT / self.folder / self.package


CORE = Distribution("core", "triclinium_core")
CLIENT = Distribution("trio_client", "triclinium")
EXTENSION = Distribution("c_ext", "triclinium_c")
DISTRIBUTIONS = (CORE, CLIENT, EXTENSION)

# -- The core performs no I/O: it gets time, entropy and bytes as data, and returns its reports as actions.

REFUSED_IN_CORE: Mapping[str, str] = {
    "_thread": "threads",
    "asyncio": "an event loop",
    "concurrent": "threads and processes",
    "http": "sockets",
    "importlib": "imports that no rule sees",
    "logging": "the driver logs",
    "multiprocessing": "processes",
    "os": "the environment",
    "pathlib": "files",
    "queue": "threads",
    "random": "randomness is a parameter, `rng`",
    "sched": "the clock",
    "secrets": "randomness; a nonce arrives in an event",
    "select": "sockets",
    "selectors": "sockets",
    "signal": "processes",
    "socket": "sockets",
    "socketserver": "sockets",
    "ssl": "sockets",
    "subprocess": "processes",
    "tempfile": "files",
    "threading": "threads",
    "time": "the clock; `now` is a parameter",
    "trio": "an event loop",
    "uuid": "randomness and the clock",
}
"""Modules that the core must not import, each with the reason."""

MAY_IMPORT: Mapping[tuple[str, str], str] = {
    ("triclinium_core.lazy_names", "importlib"): "loads names on first use; the rules see the imports of type checkers",
}
"""Intended imports of refused modules: the reason, by importing and imported module."""

REFUSED_NAMES_IN_CORE: Mapping[str, str] = {
    "__import__": "imports that no rule sees",
    "breakpoint": "belongs to an afternoon, not to a commit",
    "datetime.date.today": "reads the clock",
    "datetime.datetime.now": "reads the clock",
    "datetime.datetime.today": "reads the clock",
    "datetime.datetime.utcnow": "reads the clock",
    "eval": "runs text",
    "exec": "runs text",
    "input": "waits for a person",
    "io.open": "opens a file",
    "open": "opens a file",
    "print": "writes to a terminal",
    "sys.argv": "reads the command line",
    "sys.modules": "finds modules that no rule sees",
    "sys.stderr": "writes to a terminal",
    "sys.stdin": "reads from a terminal",
    "sys.stdout": "writes to a terminal",
}
"""Names of permitted modules and builtins that the core must not use."""

MAY_USE: Mapping[tuple[str, str], str] = {
    ("triclinium_core.testing.replayed", "open"): "a test names the file of a tape, and no client imports this module",
}
"""Intended uses of refused names: the reason, by using module and name."""

PROGRAMS: Mapping[str, str] = {
    "triclinium_core.testing.simulation.__main__": "a command: it has a clock, a terminal and processes, and no rule",
}
"""Modules of the core that are run and never imported, and may use the environment, with the reason."""

# -- The core checks the nesting of JSON before it decodes the text.

MAY_DECODE: Mapping[tuple[str, str], str] = {
    ("triclinium_core.services.received", "decoded"): "reads the parts of a text that was checked as a whole",
}
"""Functions that decode JSON without a check of its nesting: the reason, by module and function."""

# -- Independence of packages: imports, words and attributes.


def _of_core(names: str) -> Sequence[str]:
    return tuple(f"{CORE.package}.{name}" for name in names.split())


IMPORTS_OF: Mapping[str, Sequence[str]] = {
    f"{CORE.package}.{name}": _of_core(allowed)
    for name, allowed in {
        "error_context": "shown",
        "argument_error": "shown",
        "concealment": "",
        "json_depth": "",
        "lazy_names": "",
        "errors": "argument_error error_context shown",
        "shown": "",
        "decoder_faults": "shown",
        "checks": "argument_error errors shown",
        "retry": "argument_error errors error_context checks concealment json_depth lazy_names retry shown",
        "explain": "argument_error errors explain checks lazy_names retry shown",
        # The next three packages serve any program, so they must not import the exceptions of Couchbase.
        "retry.cassandra": """
            argument_error checks lazy_names retry.cassandra retry.checks retry.invalid_event retry.kinds retry.tables
            shown
        """,
        "retry.smithy": "argument_error checks lazy_names retry.backoff retry.checks retry.kinds retry.smithy shown",
        "retry.calls": """
            argument_error checks lazy_names retry.backoff retry.calls retry.checks retry.smithy retry.tables shown
        """,
    }.items()
}
"""Permitted imports of modules and packages besides the standard library."""

IMPORTS_OF_NEUTRAL: Mapping[str, Sequence[str]] = {
    "triclinium_core.contract.neutral": (
        "msgspec",
        "triclinium_core.argument_error",
        "triclinium_core.contract.neutral",
        "triclinium_core.decoder_faults",
        "triclinium_core.retry.checks",
        "triclinium_core.shown",
        "triclinium_core.work",
    ),
    "triclinium._driver": (
        "idna",
        "msgspec",
        "trio",
        "triclinium._driver",
        "triclinium._trio_run",
        "triclinium.abc",
        "triclinium_core.argument_error",
        "triclinium_core.contract.neutral",
        "triclinium_core.work",
    ),
}
"""Permitted imports of the neutral contract and driver besides the standard library."""

NEUTRAL_FOLDERS: Sequence[str] = (
    "core/triclinium_core/contract/neutral",
    "core/triclinium_core/testing/driver_laws/neutral",
    "trio_client/triclinium/_driver",
)
COUCHBASE_WORDS: Sequence[str] = (
    *("analytics", "bucket", "couchbase", "document", "durability", "kv", "memcached", "query", "rfc 0", "sasl"),
    *("scram", "sdk-rfc", "vbucket"),
)
"""Words that must not appear in a neutral folder, in upper or lower case."""

NO_CLIENT: Sequence[str] = (
    "triclinium_core.adapters",
    "triclinium_core.event_tape",
    "triclinium_core.explain",
    "triclinium_core.testing",
    "triclinium_core.timeline",
    "triclinium_core.tools",
    "triclinium._cli",
    "triclinium.adapters",
    "triclinium.opentelemetry",
    "triclinium.testing",
)
"""Packages that are not part of a client, so that no client loads them."""

LAYERS: Sequence[Sequence[str]] = (
    ("triclinium_core.concealment", "triclinium_core.json_depth", "triclinium_core.shown"),
    (
        "triclinium_core.argument_error",
        "triclinium_core.error_context",
        "triclinium_core.lazy_names",
        "triclinium_core.work",
    ),
    ("triclinium_core.decoder_faults", "triclinium_core.errors"),
    ("triclinium_core.checks",),
    ("triclinium_core.retry",),
    ("triclinium_core.retry.calls",),
    ("triclinium_core.retry.combined",),
    ("triclinium_core.contract.neutral", "triclinium_core.explain", "triclinium_core.telemetry"),
    ("triclinium_core.tools",),
    ("triclinium_core.options", "triclinium_core.transcoding"),
    ("triclinium_core._speedups", "triclinium_core._version", "triclinium_core.kv"),
    ("triclinium_core.profiles",),
    ("triclinium_core.environment",),
    ("triclinium_core.services",),
    ("triclinium_core.contract.couchbase",),
    ("triclinium_core.decision_tape",),
    ("triclinium_core.timeline",),
    ("triclinium_core.runtime.toolkit",),
    ("triclinium_core.runtime.lifecycle",),
    ("triclinium_core.runtime.kv",),
    ("triclinium_core.runtime.services",),
    ("triclinium_core.client",),
    ("triclinium_core.event_tape",),
    ("triclinium_core.adapters",),
    ("triclinium_core",),
    ("triclinium_core.testing",),
)
"""Order of imports: a module may import its own row and the rows above it.

The longest matching name determines the row.
"""

STRANGERS: Sequence[tuple[str, str]] = (
    ("triclinium_core.runtime.kv.connection", "triclinium_core.kv.topology"),
    ("triclinium_core.retry.cassandra", "triclinium_core.retry.couchbase"),
    ("triclinium_core.retry.cassandra", "triclinium_core.retry.smithy"),
    ("triclinium_core.retry.couchbase", "triclinium_core.retry.smithy"),
)
"""Pairs that must be independent, in both directions."""

WRITTEN_BY_THEMSELVES: Sequence[str] = ("triclinium_core.runtime.kv.connection.connection.Connection",)
"""Classes whose attributes other modules must not write. Other modules call methods instead."""

# -- One module imports the C module, and only tests read the variable that selects the implementation.

C_MODULE = "triclinium_c"
C_MODULE_DOOR = "triclinium_core._speedups"

IMPLEMENTATION_VARIABLE = "TRICLINIUM_IMPL"
"""Environment variable that only tests/conftest.py reads: a library must not depend on its caller's environment."""

# -- The driver makes no decisions.

_IN_SIGNATURES = """
    AdaptiveRetryStrategy AnyRetryStrategy AsyncRetryStrategy AttemptRecord AwsRetryNumbers
    BestEffortRetryStrategy BreakerStatistics CircuitBreakerOptions ErrorInfo ErrorMapRetryStrategy
    FailedAttemptError FastFailOnTerminalErrorRetryStrategy RETRY_SAFE Random RetryAction RetryBackoffStrategy
    RetryEnding RetryGivenUp RetryHook RetryOn RetryReason RetryReport RetryRequest RetryScheduled RetryStrategy
    RetrySucceeded RetryToken Service SimpleRetryStrategy StandardRetryStrategy TokenScope attempts_of
"""
DRIVER_MAY_NAME = frozenset(
    [
        *_IN_SIGNATURES.split(),
        # These names classify a strategy and convert it for any function; ``exponential`` is a user's backoff.
        *("AnyCallStrategy", "DeciderKind", "call_strategy", "kind_of", "exponential"),
        # These names check arguments: integers, types, and strategies that operations accept.
        *("check_integer", "check_type", "require_strategy"),
        # This function classifies the failures of a bulk block for its lists, after the last attempt of each.
        "may_be_applied",
        # These names are the facts of an HTTP request, and the user's rules that decide about it.
        *("HttpFailure", "HttpRequestFacts", "HttpRetryRules"),
        # These names retry any function: machine, options, decisions, first attempt, and checks of arguments.
        *("AwaitStrategy", "CallMachine", "CallTerms", "Decision", "Sleep"),
        *("check_hooks", "check_info", "first_delay", "refuse_first"),
    ]
)
"""Names of ``triclinium_core.retry`` that the trio client may import.

They are those in signatures and user choices, some that convert, check or classify values, and the machine of ``retry``
and related functions, which the client executes like ``ClientMachine``.
"""

DECIDES: Sequence[str] = ("triclinium_core.explain", "triclinium_core.retry")
"""Packages that decide about retries, or explain a decision."""
DECIDES_FOR_PEOPLE = "triclinium._cli"
"""Package of the commands.
They explain decisions and may use the tables, but run operations by the public client only.
"""

# -- Hosts run the core outside trio. They belong to no distribution.

HOSTS = ROOT / "core" / "hosts"

IMPORTS_OF_HOSTS: Mapping[str, Sequence[str]] = {
    "hosts.js.assets": (),
    "hosts.js.host": ("hosts.js.values", "js", "pyodide", "triclinium_core"),
    "hosts.js.values": ("msgspec", "triclinium_core"),
    "hosts.component.adapter": (
        "componentize_py_types",
        "triclinium_core.explain",
        "triclinium_core.retry",
        "triclinium_core.shown",
        "triclinium_core.tools",
        "wit_world",
    ),
    "hosts.component.build": (),
}
"""Permitted imports of hosts besides the standard library. A host imports nothing from the trio client."""

# -- Dependencies of distributions.

EXTRA_OF: Mapping[str, str] = {
    "triclinium.adapters.httpx": "httpx",
    "triclinium.adapters.httpx2": "httpx2",
    "triclinium_core.adapters.cassandra_driver": "cassandra-driver",
    "triclinium_core.adapters.smithy_core": "smithy-core",
    "triclinium_core.testing": "testing",
    "triclinium._cli.simulate.plot": "plot",
    "triclinium._cli.simulate.validation_plot": "plot",
    "triclinium.opentelemetry": "opentelemetry",
    "triclinium.testing": "testing",
}
"""Packages that may use the named extra of their distribution in addition to its dependencies."""

NEEDS_PYTHON: Mapping[str, tuple[int, int]] = {
    "triclinium_core.adapters.smithy_core": (3, 12),
}
"""Oldest Python version of modules whose adapted package supports no older one."""

IMPORTED_AS: Mapping[str, str] = {
    "cassandra_driver": "cassandra",
    "dnspython": "dns",
    "opentelemetry_api": "opentelemetry",
}
"""Import names of distributions with a different name."""

UNDECLARED: Mapping[tuple[str, str], str] = {
    (C_MODULE_DOOR, C_MODULE): "looked for when it is asked for; the client's extra `c` installs it",
    ("triclinium._services.rows", "typing_extensions"): "for type checkers, which bring it: defaults of type variables",
}
"""Imports that no pyproject declares, by importing module and import name, with the reason."""

NOT_IMPORTED: Mapping[tuple[str, str], str] = {
    ("triclinium_c", "cffi"): "the compiled module loads cffi's backend",
}
"""Dependencies that no source imports, by package and import name, with the reason."""

# -- Size.

FILE_LINES_MAX = 600
"""Maximum number of lines of a source or test file."""

TEST_NAME_WORDS_MAX = 8
"""Maximum number of words in the name of a test, after ``test``."""

FUNCTION_LINES_MAX = 70
TOO_LONG: Mapping[str, str] = {
    "trio_client/triclinium/_open_cluster.py:open_cluster": "each option has a line in three lists, and no step is hidden",
}
"""Functions as ``file:qualified name`` that may exceed the limit, with the reason."""

# -- Shape.

INIT_WITH_CODE: Mapping[str, str] = {
    "triclinium": "loads its names on first use",
    CORE.package: "loads its names on first use",
    "triclinium_core.retry.calls": "loads its names on first use",
    "triclinium_core.retry.cassandra": "loads its names on first use",
    "triclinium_core.retry.couchbase": "loads its names on first use",
    "triclinium_core.retry.smithy": "loads its names on first use",
    "triclinium_core.services.analytics": "loads its modules on first use",
    "triclinium_core.services.search": "loads its modules on first use",
    "triclinium_core.services.views": "loads modules on first use",
    "triclinium._management": "loads modules on first use",
    "triclinium._services": "loads the module of results on first use",
    "triclinium_c": "wraps the compiled module",
}
"""Packages whose ``__init__`` may hold more than a docstring, imports and ``__all__``, with the reason."""
