"""Names that ``import triclinium`` provides, the modules that it loads, and the reprs of public objects."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections import Counter
from types import ModuleType

import pytest
from trio.testing import MockClock

import triclinium
import triclinium.errors
import triclinium.search
import triclinium.testing
import triclinium.views
import triclinium_core.testing
from tests.public_names import MODULES
from tests.rows import rows
from tests.trio_client.pair import open_pair
from triclinium_core.testing.fakes import faults


@rows("name", triclinium.errors.__all__)
def test_tracebacks_name_a_public_module(name: str) -> None:
    """The module in the traceback of an exception is public and exports the exception."""
    kind = getattr(triclinium.errors, name)
    parts = kind.__module__.split(".")

    assert [] == [part for part in parts if part.startswith("_")]
    assert kind is getattr(sys.modules[kind.__module__], name)


NAMES_MAX = 75


@rows("package", [*MODULES, triclinium.testing])
def test_all_lists_existing_names_sorted(package: ModuleType) -> None:
    """``__all__`` is sorted, and every name in it exists."""
    assert sorted(package.__all__) == package.__all__
    assert all(hasattr(package, name) for name in package.__all__)


def test_every_name_has_one_module() -> None:
    """The package has few names, and no module repeats a name of another one."""
    counted = Counter(name for module in MODULES for name in module.__all__)

    assert len(triclinium.__all__) <= NAMES_MAX
    assert [] == [name for name, count in counted.items() if count > 1]


def test_type_checkers_see_the_lazy_names() -> None:
    """The imports for type checkers are the table that loads a name on its first use."""
    imported = {
        alias.name: node.module
        for block in ast.parse(inspect.getsource(triclinium)).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    modules = dict.fromkeys(triclinium._MODULES, "triclinium")

    assert {**triclinium._MODULE_OF, **modules} == imported
    assert sorted(imported) == triclinium.__all__
    assert {*imported} <= {*dir(triclinium)}


@rows(
    ("name", "place"),
    [
        ("QueryStatus", "triclinium.query.QueryStatus"),
        ("BucketSettings", "triclinium.management.BucketSettings"),
        ("DocumentNotFoundException", "triclinium.errors.DocumentNotFoundException"),
        ("Nonsense", "module 'triclinium' has no attribute 'Nonsense'"),
    ],
)
def test_a_missing_name_is_an_attribute_error(name: str, place: str) -> None:
    """The error for a missing name names the module of the package that has it, if one does."""
    with pytest.raises(AttributeError, match=place):
        getattr(triclinium, name)


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
def test_reprs_are_descriptive(shown: object, expected: str) -> None:
    """The repr of a public object describes it, without a memory address."""
    assert repr(shown).startswith(expected)
    assert " at 0x" not in repr(shown)


async def test_the_repr_of_a_cluster_has_its_address() -> None:
    """The repr of a cluster has its connection string; that of a fake cluster has no memory address."""
    async with triclinium.testing.open_fake_cluster() as fake, fake.open_client() as cluster:
        assert repr(cluster) == f"<Cluster {fake.connection_string}>"
        assert " at 0x" not in repr(fake)


async def test_reprs_of_block_results(autojump_clock: MockClock) -> None:
    """The repr of a block's result describes it, without a memory address and without documents."""
    async with open_pair() as (_, cluster, people):
        await people.upsert("ada", "secret")
        async with (
            cluster.subscribe_topology() as changes,
            people.get_all_replicas("ada") as copies,
            people.scan(triclinium.scans.PrefixScan("a")) as found,
            people.get_many(["ada"]) as outcomes,
        ):
            shown = [repr(given) for given in (changes, copies, found, outcomes)]

    expected = ("<TopologyChanges unseen=", "<ReplicaResults errors=", "<ScanResults of travel.", "<BulkReads taken=")
    assert all(text.startswith(start) for text, start in zip(shown, expected, strict=True))
    assert not any(word in text for text in shown for word in ("0x", "secret", "ada"))


def test_testing_exports_every_fault() -> None:
    """``triclinium.testing`` exports every function of the core that creates a fault."""
    functions = {
        name
        for name, value in vars(faults).items()
        if name in triclinium_core.testing.__all__ and name.islower() and value.__module__ == faults.__name__
    }

    assert functions
    assert functions <= set(triclinium.testing.__all__)
    assert all(getattr(triclinium.testing, name) is getattr(triclinium_core.testing, name) for name in functions)


ON_FIRST_USE = (
    *("asyncio", "click", "dns", "hypothesis", "rich", "triclinium_core.event_tape", "triclinium_core.testing"),
    *(
        f"triclinium_core.services.{name}"
        for name in ("analytics.", "management.", "search.", "views.result", "views.view_")
    ),
    *("triclinium._management.", "triclinium._services.results"),
)
"""Beginnings of the names of modules that ``open_cluster`` does not load."""


def test_names_load_on_first_use() -> None:
    """The import loads neither trio nor msgspec; ``open_cluster`` loads no module of ``ON_FIRST_USE``."""
    program = f"""
import sys, triclinium
print(sorted(name for name in sys.modules if name.startswith(('trio', 'msgspec'))))
print(triclinium.errors.DocumentNotFoundException.__name__)
triclinium.open_cluster
print(sorted(name for name in sys.modules if name.startswith({ON_FIRST_USE})))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert [
        "[]",
        "DocumentNotFoundException",
        "[]",
    ] == run.stdout.splitlines()
