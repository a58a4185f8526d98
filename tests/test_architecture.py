"""Architecture of the sources: permitted imports, names that the core must not use, and the shape of files.

The rules are in ``tests/architecture``, where each is tested with a planted violation; their data are in ``policy.py``.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from functools import cache
from typing import Any

import pytest

from tests.architecture import import_guard, import_rules, json_rules, policy, shape_rules
from tests.architecture.source import SourceFile, imports, is_standard, is_within, names_of, read_package

SOURCES: dict[policy.Distribution, list[SourceFile]] = {
    distribution: read_package(distribution.sources, policy.ROOT) for distribution in policy.DISTRIBUTIONS
}
HOSTS = read_package(policy.HOSTS, policy.ROOT)
ALL_SOURCES = [source for sources in SOURCES.values() for source in sources]

LOADED_BY = """\
import importlib, sys
before = set(sys.modules)
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*sorted(set(sys.modules) - before), sep="\\n")
"""
"""Program that imports the given modules and prints all modules that were loaded."""

CLIENT_PROGRAM = """\
import sys, trio, triclinium
async def main():
    async with triclinium.open_cluster("memcached://127.0.0.1:1"):
        pass
trio.run(main)
print(*sys.modules, sep="\\n")
"""
"""Program that opens a client and prints all modules that were loaded."""

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
    """Except for programs and listed imports, the core imports no event loop, socket, clock, randomness or logging."""
    assert [] == import_rules.refused_imports(PURE, policy.REFUSED_IN_CORE, policy.MAY_IMPORT)


def test_programs_are_run_and_not_imported() -> None:
    """Programs in the core use the environment, exist, and are not imported by other modules."""
    known = names_of(SOURCES[policy.CORE])
    imported = {found.target for found in imports(ALL_SOURCES, names_of(ALL_SOURCES))}

    assert set(policy.PROGRAMS) <= known
    assert imported.isdisjoint(policy.PROGRAMS)
    assert all(import_rules.refused_imports([source], policy.REFUSED_IN_CORE) for source in EXCUSED)


def test_core_uses_no_environment() -> None:
    """Except in programs and listed uses, the core does not use the environment through allowed modules or builtins."""
    assert [] == import_rules.refused_uses(PURE, policy.REFUSED_NAMES_IN_CORE, policy.MAY_USE)


def test_json_is_decoded_within_limits() -> None:
    """Except in listed functions, the core checks the nesting of each text before it decodes it as JSON."""
    assert [] == json_rules.unchecked_decoding(SOURCES[policy.CORE], policy.MAY_DECODE)


def test_core_runs_without_environment() -> None:
    """Importing the modules of the core for this Python, except its programs, causes no refused import at run time."""
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


def test_basic_packages_import_only_listed_modules() -> None:
    """The basic packages import only the standard library and the modules that the policy lists for them."""
    assert [] == import_rules.imports_beyond(SOURCES[policy.CORE], policy.IMPORTS_OF)


@pytest.mark.native
@pytest.mark.parametrize("package", policy.IMPORTS_OF)
def test_basic_packages_load_only_listed_modules(package: str) -> None:
    """A fresh interpreter that imports a basic package loads only the standard library and the basic packages."""
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


def test_neutral_packages_import_only_listed_modules() -> None:
    """The contract of any machine and its driver import nothing that is specific to Couchbase."""
    assert [] == import_rules.imports_beyond(
        [*SOURCES[policy.CORE], *SOURCES[policy.CLIENT]], policy.IMPORTS_OF_NEUTRAL
    )


def test_hosts_import_only_listed_modules() -> None:
    """Each host has a row in the policy, and imports only the standard library and the modules of its row."""
    rows = policy.IMPORTS_OF_HOSTS

    assert [] == [source.path for source in HOSTS if not any(is_within(source.module, row) for row in rows)]
    assert [] == import_rules.imports_beyond(HOSTS, rows)


def test_neutral_folders_have_no_couchbase_word() -> None:
    """The neutral contract, its laws and its driver contain no word that is specific to Couchbase."""
    sources = [source for source in ALL_SOURCES if source.path.startswith(tuple(policy.NEUTRAL_FOLDERS))]

    assert dict.fromkeys(policy.NEUTRAL_FOLDERS, True) == {
        folder: any(source.path.startswith(folder) for source in sources) for folder in policy.NEUTRAL_FOLDERS
    }
    assert [] == shape_rules.words_in(sources, policy.COUCHBASE_WORDS)


@pytest.mark.native
def test_a_client_loads_no_tools() -> None:
    """A program with a client on a fake connection string loads none of the packages for tools."""
    run = subprocess.run([sys.executable, "-c", CLIENT_PROGRAM], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()

    assert "triclinium_core.client.client_machine" in loaded
    assert [] == [name for name in loaded if any(is_within(name, package) for package in policy.NO_CLIENT)]


def test_imports_follow_the_layers() -> None:
    """A module imports only modules of its own layer and of earlier ones."""
    assert [] == import_rules.upward_imports(SOURCES[policy.CORE], policy.LAYERS)


def test_the_policy_names_existing_modules() -> None:
    """Every module that the policy names exists; a rule about a missing module would always hold."""
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
def test_imports_have_no_cycles(distribution: policy.Distribution) -> None:
    """No two modules import each other, directly or indirectly."""
    assert [] == import_rules.import_cycles(SOURCES[distribution])


def test_independent_packages_stay_independent() -> None:
    """Packages that the policy lists as independent, such as the kinds of retry rules, do not import each other."""
    assert [] == import_rules.strangers_meeting(SOURCES[policy.CORE], policy.STRANGERS)


def test_one_module_imports_the_c_module() -> None:
    """Only the module that chooses the implementation imports the C module."""
    assert [] == import_rules.imports_past_the_door(
        [*SOURCES[policy.CORE], *SOURCES[policy.CLIENT]], policy.C_MODULE, policy.C_MODULE_DOOR
    )


def test_no_source_reads_the_test_variable() -> None:
    """No source mentions the environment variable with which the tests choose the implementation."""
    assert [] == import_rules.mentions(ALL_SOURCES, policy.IMPLEMENTATION_VARIABLE)


def test_client_uses_public_names() -> None:
    """The client uses only public names of the core."""
    assert [] == import_rules.private_uses(SOURCES[policy.CLIENT], SOURCES[policy.CORE])


def test_driver_decides_nothing() -> None:
    """Except in the commands, the client imports only permitted names from the packages that make decisions."""
    assert [] == [
        finding
        for package in policy.DECIDES
        for finding in import_rules.decisions_taken(
            SOURCES[policy.CLIENT], SOURCES[policy.CORE], package, policy.DRIVER_MAY_NAME, policy.DECIDES_FOR_PEOPLE
        )
    ]


@each_distribution
def test_dependencies_are_declared(distribution: policy.Distribution) -> None:
    """Every import of another distribution is declared in the pyproject, or in the extra that the package may use."""
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
    """Every dependency in the pyproject is imported, unless the policy excuses it."""
    declared = import_rules.requirement_names(project_of(distribution).get("dependencies", ()), policy.IMPORTED_AS)
    excused = [name for package, name in policy.NOT_IMPORTED if package == distribution.package]

    assert [] == import_rules.unused_dependencies(SOURCES[distribution], declared, excused)


@each_distribution
def test_packages_are_typed(distribution: policy.Distribution) -> None:
    """Each package has a py.typed file."""
    assert (distribution.sources / "py.typed").is_file()


def test_functions_are_short() -> None:
    """No function exceeds the limit, except those with a reason."""
    assert [] == shape_rules.too_long([*ALL_SOURCES, *HOSTS], policy.FUNCTION_LINES_MAX, policy.TOO_LONG)


def test_files_are_short() -> None:
    """No file of a distribution or of the tests is longer than the limit."""
    assert [] == shape_rules.long_files([*ALL_SOURCES, *HOSTS, *sources_of_tests()], policy.FILE_LINES_MAX)


def test_public_names_have_docstrings() -> None:
    """Every public name has a docstring."""
    assert [] == shape_rules.missing_docstrings([*ALL_SOURCES, *HOSTS])


def test_exports_are_correct() -> None:
    """Every ``__all__`` is sorted and complete, and names existing objects."""
    assert [] == shape_rules.untrue_exports(ALL_SOURCES)


@pytest.mark.parametrize("owner", policy.WRITTEN_BY_THEMSELVES)
def test_some_classes_own_their_attributes(owner: str) -> None:
    """If the policy lists a class, only the module of the class writes its attributes."""
    assert [] == shape_rules.foreign_writes(SOURCES[policy.CORE], owner)


def test_packages_have_no_code() -> None:
    """An ``__init__.py`` has only a docstring, imports and exports, unless the policy lists its package."""
    assert [] == shape_rules.packages_with_code(ALL_SOURCES, policy.INIT_WITH_CODE)


def test_tests_have_docstrings() -> None:
    """Every test has a docstring of one paragraph that ends with the punctuation of a sentence."""
    assert [] == shape_rules.wordless_tests(sources_of_tests())


def test_tests_have_short_names() -> None:
    """The name of a test has at most eight words."""
    assert [] == shape_rules.long_test_names(sources_of_tests(), policy.TEST_NAME_WORDS_MAX)
