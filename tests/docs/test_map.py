"""Map of the code, which must be current and complete, with a picture that agrees with the policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs._ext.machines import MACHINES
from docs._ext.modules import module_tables, summary
from tests.architecture.policy import CLIENT, CORE, LAYERS, ROOT
from tests.docs.map.layers import allowed_to, layers_picture, shown
from tests.docs.map.page import NOTES, PAGE, map_page
from tests.rows import rows

pytestmark = pytest.mark.native


def listed() -> Iterator[tuple[Path, str]]:
    """Yield each file in the lists of modules, in the folder of the heading above it, with its sentence."""
    for root, without in re.findall(r"```{modules} (\S+)\n(?::without: (\w+)\n)?```", PAGE.read_text(encoding="utf-8")):
        folder = ROOT
        for line in module_tables(root, without=without or None).splitlines():
            if heading := re.fullmatch(r"### `(.*)`", line):
                folder = ROOT / root.partition("/")[0] / heading[1]
            elif row := re.fullmatch(r"\| `(\w+\.py)` \| (.*) \|", line):
                yield folder / row[1], row[2]


def test_the_page_is_current() -> None:
    """The page equals the current output of ``python -m tests.docs.map``."""
    assert map_page() == PAGE.read_text(encoding="utf-8")


def test_the_lists_have_every_module_once() -> None:
    """The lists have each file of both packages in its folder, and no other file."""
    in_tree = [path for each in (CORE, CLIENT) for path in each.sources.rglob("*.py") if path.name != "__init__.py"]

    assert sorted(in_tree) == sorted(path for path, _ in listed())


@rows("row", list(listed()))
def test_every_module_has_a_sentence(row: tuple[Path, str]) -> None:
    """The description of each file is a sentence of at least two words."""
    assert re.fullmatch(r"\S+ .*\S[.?!]", row[1])


def test_the_picture_has_every_layer() -> None:
    """The boxes are the layers of the policy, from the last to the first, below the client."""
    first, *boxes = re.split(r"├.*┤", layers_picture())
    names = [re.findall(r"^│ (\S+)", box, re.MULTILINE) for box in boxes]

    assert "triclinium" in first
    assert [[shown(module) for module in layer] for layer in reversed(LAYERS)] == [
        [name for name in box if name != "│"] for box in names
    ]


def test_a_package_may_import_lower_layers() -> None:
    """The page permits ``kv`` to import its neighbours and lower layers, but not higher ones."""
    allowed = allowed_to("triclinium_core.kv")

    assert {"`_speedups.py`", "`retry`", "`shown.py`"} <= set(allowed.split(", "))
    assert {"`kv`", "`services`", "`runtime/kv`", "`client`"}.isdisjoint(allowed.split(", "))


def test_every_machine_has_a_note() -> None:
    """Each drawn machine has a note on how to read it."""
    assert MACHINES.keys() == NOTES.keys()


@rows(
    ("docstring", "expected"),
    [
        ("Codec of ``get``. The rest.", "Codec of `get`."),
        ("The exceptions, one class per entry::\n\n    CouchbaseException", "The exceptions, one class per entry."),
        ("Durations: ``1m3.5s``,\n``75000ms``. More.", "Durations: `1m3.5s`, `75000ms`."),
        ("Why is it retried?", "Why is it retried?"),
    ],
)
def test_the_summary_is_the_first_sentence(tmp_path: Path, docstring: str, expected: str) -> None:
    """The summary ends with the first sentence or with the paragraph, and its code is Markdown."""
    module = tmp_path / "module.py"
    module.write_text(f'"""{docstring}\n"""\n', encoding="utf-8")

    assert expected == summary(module)
