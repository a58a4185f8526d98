"""The architecture holds: who imports whom, what the core never touches, and what every file looks like.

The rules are in ``tests/architecture``, each with a planted violation; what they hold the sources to is ``policy.py``.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from functools import cache
from typing import Any

import pytest

from tests.architecture import import_guard, import_rules, policy, shape_rules
from tests.architecture.source import SourceFile, imports, is_standard, is_within, names_of, read_package

SOURCES: dict[policy.Distribution, list[SourceFile]] = {
    distribution: read_package(distribution.sources, policy.ROOT) for distribution in policy.DISTRIBUTIONS
}
ALL_SOURCES = [source for sources in SOURCES.values() for source in sources]

LOADED_BY = """\
import importlib, sys
before = set(sys.modules)
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*sorted(set(sys.modules) - before), sep="\\n")
"""
"""A program that imports the modules it is given and prints all that came with them."""

CLIENT_PROGRAM = """\
import sys, trio, triclinium
async def main():
    async with triclinium.open_cluster("memcached://127.0.0.1:1"):
        pass
trio.run(main)
print(*sys.modules, sep="\\n")
"""
"""A program that opens a client and prints all modules that it has loaded."""

EXCUSED = [source for source in SOURCES[policy.CORE] if source.module in policy.PROGRAMS]
PURE = [source for source in SOURCES[policy.CORE] if source.module not in policy.PROGRAMS]

each_distribution = pytest.mark.parametrize("distribution", policy.DISTRIBUTIONS, ids=lambda found: found.package)


@cache
def sources_of_tests() -> list[SourceFile]:
    """Return every module below ``tests``."""
    return read_package(policy.ROOT / "tests", policy.ROOT)


def project_of(distribution: policy.Distribution) -> dict[str, Any]:
    """Return the ``[project]`` table."""
    table: dict[str, Any] = tomllib.loads(distribution.pyproject.read_text(encoding="utf-8"))["project"]
    return table


def test_core_imports_no_environment() -> None:
    """No event loop, socket, clock, randomness or logging: the core decides and never moves."""
    assert [] == import_rules.refused_imports(PURE, policy.REFUSED_IN_CORE, policy.MAY_IMPORT)


def test_programs_are_run_and_never_imported() -> None:
    """What brings a clock and a terminal into the core is at its edge, and is there at all."""
    known = names_of(SOURCES[policy.CORE])
    imported = {found.target for found in imports(ALL_SOURCES, names_of(ALL_SOURCES))}

    assert set(policy.PROGRAMS) <= known
    assert imported.isdisjoint(policy.PROGRAMS)
    assert all(import_rules.refused_imports([source], policy.REFUSED_IN_CORE) for source in EXCUSED)


def test_core_uses_no_environment() -> None:
    """Nor does the core reach one of them through a module that is harmless otherwise, or through a builtin."""
    assert [] == import_rules.refused_uses(PURE, policy.REFUSED_NAMES_IN_CORE)


def test_core_runs_without_environment() -> None:
    """Every module of the core can be imported while those modules are really refused to it."""
    refused = ",".join(sorted(policy.REFUSED_IN_CORE))
    excused = ",".join(f"{importer}:{imported}" for importer, imported in policy.MAY_IMPORT)
    too_new = {module for module, oldest in policy.NEEDS_PYTHON.items() if sys.version_info < oldest}
    run = subprocess.run(
        [
            sys.executable,
            import_guard.__file__,
            policy.CORE.package,
            refused,
            excused,
            *sorted(names_of(PURE) - too_new),
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ("", "", 0) == (run.stdout, run.stderr, run.returncode)


def test_the_heart_stands_alone() -> None:
    """Errors and retry need the standard library, and of ours only what stands before them."""
    assert [] == import_rules.imports_beyond(SOURCES[policy.CORE], policy.IMPORTS_OF)


@pytest.mark.native
@pytest.mark.parametrize("package", policy.IMPORTS_OF)
def test_the_heart_stands_alone_in_effect(package: str) -> None:
    """A fresh interpreter that imports them loads the standard library and each other, whatever the packages above offer."""
    modules = sorted(name for name in names_of(SOURCES[policy.CORE]) if is_within(name, package))
    run = subprocess.run(
        [sys.executable, "-c", LOADED_BY, *modules], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    loaded = run.stdout.split()

    assert set(modules) <= set(loaded)
    assert [] == [
        name
        for name in loaded
        if not is_standard(name)
        and name != policy.CORE.package
        and not any(is_within(name, one) for one in policy.IMPORTS_OF)
    ]


def test_the_neutral_halves_stand_alone() -> None:
    """The contract of any machine, and the half of the driver that feeds any machine, import nothing of Couchbase."""
    assert [] == import_rules.imports_beyond(
        [*SOURCES[policy.CORE], *SOURCES[policy.CLIENT]], policy.IMPORTS_OF_NEUTRAL
    )


def test_neutral_folders_have_no_couchbase_word() -> None:
    """The neutral contract, its laws and its driver name nothing that only Couchbase has."""
    sources = [source for source in ALL_SOURCES if source.path.startswith(tuple(policy.NEUTRAL_FOLDERS))]

    assert dict.fromkeys(policy.NEUTRAL_FOLDERS, True) == {
        folder: any(source.path.startswith(folder) for source in sources) for folder in policy.NEUTRAL_FOLDERS
    }
    assert [] == shape_rules.words_in(sources, policy.COUCHBASE_WORDS)


@pytest.mark.native
def test_a_client_loads_no_tools() -> None:
    """A program with a client on a fake connection string loads none of the packages that are no client."""
    run = subprocess.run([sys.executable, "-c", CLIENT_PROGRAM], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()

    assert "triclinium_core.client.client_machine" in loaded
    assert [] == [name for name in loaded if any(is_within(name, package) for package in policy.NO_CLIENT)]


def test_imports_point_one_way() -> None:
    """A module imports what stands to its left, never what stands to its right."""
    assert [] == import_rules.upward_imports(SOURCES[policy.CORE], policy.LAYERS)


def test_the_policy_names_what_is_there() -> None:
    """A rule about a module that does not exist would hold whatever happens."""
    named = {
        *(name for layer in policy.LAYERS for name in layer),
        *(name for pair in policy.STRANGERS for name in pair),
        *policy.IMPORTS_OF,
        *policy.EXTRA_OF,
        *policy.NEEDS_PYTHON,
        *policy.INIT_WITH_CODE,
        *policy.NO_CLIENT,
        *policy.IMPORTS_OF_NEUTRAL,
    }

    assert set() == named - names_of(ALL_SOURCES)


@each_distribution
def test_imports_run_in_no_circle(distribution: policy.Distribution) -> None:
    """Of two modules at most one knows the other, also by way of others."""
    assert [] == import_rules.import_cycles(SOURCES[distribution])


def test_strangers_stay_strangers() -> None:
    """The node does not know the topology, and the retry families do not know each other."""
    assert [] == import_rules.strangers_meeting(SOURCES[policy.CORE], policy.STRANGERS)


def test_one_door_to_the_c_module() -> None:
    """Whoever wants the C module asks the one module that chooses the implementation."""
    assert [] == import_rules.imports_past_the_door(
        [*SOURCES[policy.CORE], *SOURCES[policy.CLIENT]], policy.C_MODULE, policy.C_MODULE_DOOR
    )


def test_no_source_reads_the_test_variable() -> None:
    """The implementation is chosen by a call; only the tests listen to the environment."""
    assert [] == import_rules.mentions(ALL_SOURCES, policy.IMPLEMENTATION_VARIABLE)


def test_client_uses_public_names() -> None:
    """The client embeds the core as anybody could: through its public names."""
    assert [] == import_rules.private_uses(SOURCES[policy.CLIENT], SOURCES[policy.CORE])


def test_driver_decides_nothing() -> None:
    """Outside the commands, the client knows of retrying only what stands in signatures."""
    assert [] == [
        finding
        for package in policy.DECIDES
        for finding in import_rules.decisions_taken(
            SOURCES[policy.CLIENT], SOURCES[policy.CORE], package, policy.DRIVER_MAY_NAME, policy.DECIDES_FOR_PEOPLE
        )
    ]


@each_distribution
def test_dependencies_are_declared(distribution: policy.Distribution) -> None:
    """What the sources import from elsewhere stands in the pyproject, or in the extra that their package may use."""
    project = project_of(distribution)
    declared = import_rules.requirement_names(project.get("dependencies", ()), policy.IMPORTED_AS)
    extras = {
        package: import_rules.requirement_names(
            project.get("optional-dependencies", {}).get(extra, ()), policy.IMPORTED_AS
        )
        for package, extra in policy.EXTRA_OF.items()
        if is_within(package, distribution.package)
    }

    assert [] == import_rules.undeclared_imports(SOURCES[distribution], declared, extras, policy.UNDECLARED)


@each_distribution
def test_dependencies_are_used(distribution: policy.Distribution) -> None:
    """What the pyproject declares is imported somewhere."""
    declared = import_rules.requirement_names(project_of(distribution).get("dependencies", ()), policy.IMPORTED_AS)
    excused = [name for package, name in policy.NOT_IMPORTED if package == distribution.package]

    assert [] == import_rules.unused_dependencies(SOURCES[distribution], declared, excused)


@each_distribution
def test_packages_are_typed(distribution: policy.Distribution) -> None:
    """Type checkers may believe the annotations."""
    assert (distribution.sources / "py.typed").is_file()


def test_functions_are_short() -> None:
    """A function fits a screen; the exceptions have reasons, and need them."""
    assert [] == shape_rules.too_long(ALL_SOURCES, policy.FUNCTION_LINES_MAX, policy.TOO_LONG)


def test_files_are_short() -> None:
    """No file of a distribution or of the tests is longer than the limit."""
    assert [] == shape_rules.long_files([*ALL_SOURCES, *sources_of_tests()], policy.FILE_LINES_MAX)


def test_public_things_have_docstrings() -> None:
    """Whoever can reach a name can read what it is for."""
    assert [] == shape_rules.missing_docstrings(ALL_SOURCES)


def test_exports_are_true() -> None:
    """Every ``__all__`` is sorted and complete, and names what is there."""
    assert [] == shape_rules.untrue_exports(ALL_SOURCES)


@pytest.mark.parametrize("owner", policy.WRITTEN_BY_THEMSELVES)
def test_some_classes_write_themselves(owner: str) -> None:
    """Each attribute of these classes has one owner; other modules call methods."""
    assert [] == shape_rules.foreign_writes(SOURCES[policy.CORE], owner)


def test_packages_hold_no_code() -> None:
    """A package's own file says what the package is and what it offers."""
    assert [] == shape_rules.packages_with_code(ALL_SOURCES, policy.INIT_WITH_CODE)


def test_tests_say_what_they_prove() -> None:
    """Every test has its sentence."""
    assert [] == shape_rules.wordless_tests(sources_of_tests())
