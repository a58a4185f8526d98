"""Rules for the shape of files, each of which finds a planted violation and accepts permitted code."""

from __future__ import annotations

import pytest

from tests.architecture import shape_rules
from tests.architecture.source import parse


def test_too_long() -> None:
    """A long function is found, even if it is nested; a long class is not."""
    text = "class A:\n    def f(self):\n        def g():\n            a = 1\n            b = 2\n        return g\n"

    assert [] == shape_rules.too_long([parse("a", text)], 5, [])
    assert ["a.py:A.f: 5 lines, more than 4"] == shape_rules.too_long([parse("a", text)], 4, [])
    assert ["a.py:A.f.g: 3 lines, more than 2"] == shape_rules.too_long([parse("a", text)], 2, ["a.py:A.f"])


def test_too_long_requires_needed_excuses() -> None:
    """An excuse for a short or missing function is found."""
    findings = shape_rules.too_long([parse("a", "def f(): ...\n")], 5, ["a.py:f", "b.py:gone"])

    assert [
        "a.py:f: is within the limit and needs no excuse",
        "b.py:gone: is within the limit and needs no excuse",
    ] == findings


def test_long_files() -> None:
    """A long file is found; empty lines and comments count, too."""
    text = "x = 1\n\n# Words.\n"

    assert [] == shape_rules.long_files([parse("a", text)], 3)
    assert ["a.py: 3 lines, more than 2"] == shape_rules.long_files([parse("a", text)], 2)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = 1", "a.py:1: the module has no docstring"),
        ("'''Words.'''\ndef f(): ...", "a.py:2: f has no docstring"),
        ("'''Words.'''\nasync def f(): ...", "a.py:2: f has no docstring"),
        ("'''Words.'''\nclass A: ...", "a.py:2: A has no docstring"),
        ("'''Words.'''\nclass A:\n    '''Words.'''\n    def m(self): ...", "a.py:4: A.m has no docstring"),
        ("'''Words.'''\nif x:\n    def f(): ...", "a.py:3: f has no docstring"),
        ("'''Words.'''\ntry:\n    x\nexcept E:\n    def f(): ...", "a.py:5: f has no docstring"),
    ],
)
def test_missing_docstrings(text: str, found: str) -> None:
    """Modules, classes, functions and methods without a docstring are found, even in conditional code."""
    assert [found] == shape_rules.missing_docstrings([parse("a", text)])


@pytest.mark.parametrize(
    "text",
    [
        "def _f(): ...",
        "class _A:\n    def m(self): ...",
        "def f():\n    '''Words.'''\n    def g(): ...",
        "class A:\n    '''Words.'''\n    def __init__(self): ...\n    def _m(self): ...",
        "from typing import overload\n@overload\ndef f(x: int) -> int: ...\ndef f(x):\n    '''Words.'''",
        "class A:\n    '''Words.'''\n    @property\n    def p(self):\n        '''Words.'''\n    @p.setter\n    def p(self, x): ...",
        "class P(Q, Protocol[T]):\n    '''Words.'''\n    def m(self):\n        '''Words.'''\nclass A(P):\n    '''Words.'''\n    def m(self): ...",
    ],
)
def test_missing_docstrings_ignores_private_code(text: str) -> None:
    """Private and nested definitions, overloads, setters, and methods that a Protocol documents need no docstring."""
    assert [] == shape_rules.missing_docstrings([parse("a", f"'''Words.'''\n{text}")])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("__all__ = ['f', 'gone']\ndef f(): ...", "a.py: __all__ names gone, which is not there"),
        ("__all__ = ['f']\ndef f(): ...\ndef g(): ...", "a.py: __all__ leaves out g"),
        ("__all__ = ['g', 'f']\nfrom x import f, g", "a.py: __all__ is not sorted, or repeats a name"),
        ("__all__ = ['f', 'f']\nfrom x import f", "a.py: __all__ is not sorted, or repeats a name"),
    ],
)
def test_untrue_exports(text: str, found: str) -> None:
    """Missing, superfluous, unsorted and repeated names are found."""
    assert [found] == shape_rules.untrue_exports([parse("a", text)])


def test_untrue_exports_requires_a_list() -> None:
    """A package that re-exports names needs ``__all__``; a package without re-exports and a plain module do not."""
    sources = [
        parse("a", "from b import c", is_package=True),
        parse("b", "'''Words.'''\nfrom __future__ import annotations", is_package=True),
        parse("c", "from b import c"),
    ]

    assert ["a.py: re-exports names and has no __all__"] == shape_rules.untrue_exports(sources)


def test_untrue_exports_permits_correct_lists() -> None:
    """Assigned, imported, defined and conditional names are recognised; private ones need not be listed."""
    text = (
        "__all__ = ['LIMIT', 'SHA1', 'SHA256', 'Frame', 'scan']\nfrom x import Frame, SHA1\nLIMIT: int = 1\n"
        "try:\n    SHA256 = 2\nexcept E:\n    pass\ndef scan(): ...\ndef _own(): ..."
    )

    assert [] == shape_rules.untrue_exports([parse("a", text)])


def test_export_order() -> None:
    """Constants are first, then classes, then the rest; numbers are compared by value."""
    names = ["LIMIT", "SHA1", "SHA256", "SHA1024", "Frame", "X", "_own", "scan"]

    assert names == sorted(sorted(names), key=shape_rules.export_order)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("def f(engine): engine.state = 1", "engine.state"),
        ("def f(engine): engine.state += 1", "engine.state"),
        ("def f(engine): a, engine.state = 1, 2", "engine.state"),
        ("def f(engine): engine.oil.level = 1", "engine.oil.level"),
        ("def f(engine): engine.parts[0] = 1", "engine.parts[0]"),
        ("def f(engine): del engine.state", "engine.state"),
        ("def f(spare: Engine | None): spare.state = 1", "spare.state"),
        ("spare: Engine = g()\nspare.state = 1", "spare.state"),
    ],
)
def test_foreign_writes(text: str, found: str) -> None:
    """Assignments to the attributes of an object, and deletions of them, are found in other modules."""
    sources = [parse("car", "class Engine: ..."), parse("a", f"from car import Engine\n{text}")]
    line = 3 if text.startswith("spare:") else 2

    assert [f"a.py:{line}: {found} is written outside of Engine"] == shape_rules.foreign_writes(sources, "car.Engine")


@pytest.mark.parametrize(
    "text",
    [
        "from car import Engine\ndef f(engine): engine.start(engine.state)",
        "from car import Engine\ndef f(self, engine): self.engine = engine",
        "from car import Engine\ndef f(self, engine): self.speeds[engine] = 1",
        "from car import Engine\ndef f(wheel: Wheel): wheel.state = 1",
        "from train import Engine\ndef f(engine): engine.state = 1",
    ],
)
def test_foreign_writes_ignores_other_objects(text: str) -> None:
    """Calls, other objects, another class of the same name and the module of the class are permitted."""
    sources = [parse("car", "class Engine: ...\nengine = Engine()\nengine.state = 1"), parse("a", text)]

    assert [] == shape_rules.foreign_writes(sources, "car.Engine")


def test_foreign_writes_requires_the_class() -> None:
    """A rule for a missing class is found."""
    findings = shape_rules.foreign_writes([parse("car", "class Wheel: ...")], "car.Engine")

    assert ["car.Engine: there is no such class"] == findings


@pytest.mark.parametrize("text", ["x = 1", "def f(): ...", "if x:\n    import y", "print()"])
def test_packages_with_code(text: str) -> None:
    """Anything but docstrings, imports and the list of exports is found unless the package is excused."""
    sources = [parse("a", f"'''Words.'''\nfrom b import c\n__all__ = ['c']\n{text}", is_package=True)]

    assert ["a.py:4: a package's own file only re-exports"] == shape_rules.packages_with_code(sources, [])
    assert [] == shape_rules.packages_with_code(sources, ["a"])


def test_packages_with_code_ignores_modules() -> None:
    """A plain module may have code."""
    assert [] == shape_rules.packages_with_code([parse("a", "x = 1")], [])


@pytest.mark.parametrize("words", ["", "'''no full stop'''", "'''Two.\n\n    Paragraphs.'''"])
def test_wordless_tests(words: str) -> None:
    """A test whose docstring is missing, lacks a full stop or has several paragraphs is found, even in a class."""
    text = f"class TestA:\n    def test_b(self):\n        {words}\n        pass"

    assert ["a.py:2: TestA.test_b needs a docstring of one sentence"] == shape_rules.wordless_tests([parse("a", text)])


def test_wordless_tests_ignores_helpers() -> None:
    """Helpers need no docstring, and a sentence may span lines."""
    text = "def helper(): ...\ndef test_a():\n    '''One sentence\n    on two lines.'''"

    assert [] == shape_rules.wordless_tests([parse("a", text)])


def test_long_test_names() -> None:
    """Only tests over the limit are found, not other functions."""
    text = "def test_a_b_c(): ...\ndef test_a_b_c_d(): ...\ndef a_long_name_of_a_helper(): ..."

    assert ["a.py:2: test_a_b_c_d has more than 3 words"] == shape_rules.long_test_names([parse("a", text)], 3)


@pytest.mark.parametrize("line", ["x = bucket_of(y)", "# two Buckets", "'SDK-RFC 0049'", "_kv = 1"])
def test_words_in(line: str) -> None:
    """A word is found in names, comments and texts, in any case."""
    assert 1 == len(shape_rules.words_in([parse("a", line)], ["bucket", "kv", "sdk-rfc"]))


def test_words_in_ignores_longer_words() -> None:
    """A longer word that contains the word is not found."""
    assert [] == shape_rules.words_in([parse("a", "# akvavit, bucketful")], ["bucket", "kv"])
