"""Text of ``docs/internals/map.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import fill

from docs._ext.machines import MACHINES
from tests.architecture.policy import CLIENT, CORE
from tests.docs.map.layers import allowed_to, complete_lists, layers_picture, refused, strangers
from tests.docs.map.traced import calls_of_a_get, calls_of_a_query
from tests.docs.pages import DOCS

PAGE = DOCS / "internals" / "map.md"
PROSE_WIDTH = 120
EXAMPLE = f"{CORE.package}.kv"

NOTES: Mapping[str, str] = {
    "request": """The diamond is the verdict on a failure, before or after the request was sent: WAITING for a retry,
        EXPIRING if the delay was cut to a limit and nothing more will be sent, or FAILED. In CONSULTING an asynchronous
        strategy decides. An arrow that starts at the frame starts at every state inside. The picture leaves out events
        that do not change the state; the table has them. `handle` raises for a pair that the table does not have, and
        changes nothing.""",
    "breaker": """No other event changes the state. OPERATION_TIMED_OUT opens the breaker at the threshold. TIME_PASSED
        sends the canary at the end of the sleep window.""",
    "cassandra_request": """A request that is RUNNING has one execution, or several speculative ones that share the
        query plan.""",
    "cassandra_execution": """An execution that finds the plan empty ends without ending the request; any other result
        of an execution may end the request.""",
    "connection": """The client sends all bootstrap requests together, and a node may answer them in any order, hence
        the arrow past AUTHENTICATING. If HELLO follows the authentication, NEGOTIATING is skipped; a plain memcached
        skips all three steps. Requests wait while the connection is on its way to READY, and are retried or fail while
        it is LOST.""",
}
"""Note on how to read the picture of each machine, by the machine's name."""


def prose(text: str) -> str:
    """Return a paragraph with lines that fit a screen."""
    return fill(" ".join(text.split()), PROSE_WIDTH, break_long_words=False, break_on_hyphens=False)


def map_page() -> str:
    """Return the page for the current sources."""
    return "\n\n".join([*_beginning(), *_layers(), *_machines(), *_calls(), *_modules()]) + "\n"


def _beginning() -> Iterator[str]:
    yield "# Map of the code"
    yield prose("""{doc}`architecture` explains the parts; this page lists them. It is generated, so do not edit it. After a
        change of the layers, of the first sentence of one of their packages, or of the functions that a get or a query
        enters, write it again:""")
    yield "```sh\nuv run python -m tests.docs.map\n```"


def _layers() -> Iterator[str]:
    yield "## Layers"
    yield prose("""A module imports its own layer and the layers below it. The longest name counts: `retry/calls` has a
        layer, and the rest of `retry` is below it. `tests/architecture/policy.py` has this list as `LAYERS`.""")
    yield f"```text\n{layers_picture()}\n```"
    yield prose(f"`kv`, for example, may import, besides itself: {allowed_to(EXAMPLE)}.")
    yield "These packages do not import each other, in either direction:"
    yield strangers()
    yield "These packages may import only what is listed:"
    yield complete_lists()
    yield "Nothing in the core imports these modules:"
    yield refused()


def _machines() -> Iterator[str]:
    """Yield the sections on states, stages and timers. Sphinx draws their pictures and tables."""
    yield "## State machines"
    for name, machine in MACHINES.items():
        yield f"### {machine.layout.title}"
        yield prose(f"The table is in `core/{machine.source}`. {NOTES[name]}")
        yield f"```{{state-diagram}} {name}\n```"
        yield f"```{{state-table}} {name}\n```"
    yield "## Stages of an operation or request"
    yield "`runtime/lifecycle/stages.py` has the table. The tests check every assignment of a stage against it."
    yield "```{generated} stages\n```"
    yield "## Timers"
    yield "All timers of a client, from `contract/couchbase/timer_kinds.py`:"
    yield "```{generated} timers\n```"


def _calls() -> Iterator[str]:
    yield "## Calls of a get"
    yield prose(f"""These are all functions of the core and the client that a get by a single task enters. The connection is
        ready, and the collection id is known. Files are named from `{CORE.folder}/{CORE.package}` or from
        `{CLIENT.folder}/{CLIENT.package}`.""")
    yield f"```text\n{calls_of_a_get()}\n```"
    yield "## Calls of a query"
    yield "A query with one row, on a connection that is open. Only calls from one file to another are shown."
    yield f"```text\n{calls_of_a_query()}\n```"


def _modules() -> Iterator[str]:
    """Yield the sections on modules. Sphinx writes their tables."""
    yield "## Modules of the core"
    yield "```{modules} core/triclinium_core\n:without: testing\n```"
    yield "## Modules for tests of the core and of its users"
    yield "```{modules} core/triclinium_core/testing\n```"
    yield "## Modules of the trio client"
    yield "```{modules} trio_client/triclinium\n```"
