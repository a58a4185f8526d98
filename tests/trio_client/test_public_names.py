"""What ``import triclinium`` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

from trio.testing import MockClock

import triclinium
import triclinium.errors
import triclinium.search
import triclinium.testing
import triclinium.views
import triclinium_core.testing
from tests.rows import rows
from tests.trio_client.pair import open_pair
from triclinium_core.testing.fakes import faults


@rows("name", triclinium.errors.__all__)
def test_tracebacks_name_a_public_module(name: str) -> None:
    """An error can be imported from where its traceback says that it is."""
    kind = getattr(triclinium.errors, name)
    parts = kind.__module__.split(".")

    assert [] == [part for part in parts if part.startswith("_")]
    assert kind is getattr(sys.modules[kind.__module__], name)


@rows("package", [triclinium, triclinium.search, triclinium.testing, triclinium.views])
def test_names_are_there_and_sorted(package: ModuleType) -> None:
    """``__all__`` is what the package offers."""
    assert sorted(package.__all__) == package.__all__
    assert all(hasattr(package, name) for name in package.__all__)


@rows(
    ("shown", "expected"),
    [
        (triclinium.BestEffortRetryStrategy(), "BestEffortRetryStrategy(backoff="),
        (triclinium.ErrorMapRetryStrategy(), "ErrorMapRetryStrategy(otherwise=FastFailOnTerminalErrorRetryStrategy("),
        (triclinium.SimpleRetryStrategy(), "SimpleRetryStrategy(max_attempts=5)"),
        (triclinium.StandardRetryStrategy(), "StandardRetryStrategy(max_attempts=3, quota_capacity=500)"),
        (triclinium.AdaptiveRetryStrategy(), "AdaptiveRetryStrategy(max_attempts=3, quota_capacity=500)"),
        (triclinium.attempts(triclinium.SimpleRetryStrategy()), "<Attempts 1: it has not begun>"),
        (triclinium.RawBinaryTranscoder(), "RawBinaryTranscoder()"),
        (triclinium.testing.FakeNodes(nodes=2), "<FakeNodes <FakeNode "),
    ],
)
def test_what_is_shown_in_a_log_says_what_it_is(shown: object, expected: str) -> None:
    """And no address of the memory, which differs from run to run."""
    assert repr(shown).startswith(expected)
    assert " at 0x" not in repr(shown)


async def test_a_cluster_is_shown_with_where_it_is() -> None:
    """So is what a fake cluster is reached by."""
    async with triclinium.testing.open_fake_cluster() as fake, fake.open_client() as cluster:
        assert repr(cluster) == f"<Cluster {fake.connection_string}>"
        assert " at 0x" not in repr(fake)


async def test_what_a_block_gives_says_what_it_is(autojump_clock: MockClock) -> None:
    """And no address of the memory; of documents nothing is shown."""
    async with open_pair() as (_, cluster, people):
        await people.upsert("ada", "secret")
        async with (
            cluster.subscribe_topology() as changes,
            people.get_all_replicas("ada") as copies,
            people.scan(triclinium.PrefixScan("a")) as found,
        ):
            shown = [repr(given) for given in (changes, copies, found)]

    expected = ("<TopologyChanges unseen=", "<ReplicaResults errors=", "<ScanResults of travel.")
    assert all(text.startswith(start) for text, start in zip(shown, expected, strict=True))
    assert not any(word in text for text in shown for word in ("0x", "secret", "ada"))


def test_one_import_is_enough_for_the_tests_of_an_application() -> None:
    """Every function that makes a fault stands beside the cluster that it strikes, and is the core's own."""
    functions = {
        name
        for name, value in vars(faults).items()
        if name in triclinium_core.testing.__all__ and name.islower() and value.__module__ == faults.__name__
    }

    assert functions
    assert functions <= set(triclinium.testing.__all__)
    assert all(getattr(triclinium.testing, name) is getattr(triclinium_core.testing, name) for name in functions)


def test_the_import_brings_the_errors_and_nothing_that_only_commands_need() -> None:
    """An application catches them by name, and does not pay for the command line."""
    program = """
import sys, triclinium
print(triclinium.errors.DocumentNotFoundException.__name__)
print(sorted({'click', 'rich', 'hypothesis', 'asyncio'} & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ["DocumentNotFoundException", "[]"] == run.stdout.splitlines()
