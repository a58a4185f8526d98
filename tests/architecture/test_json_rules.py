"""Rule for decoders of JSON, which finds each planted violation and accepts checked texts."""

from __future__ import annotations

import pytest

from tests.architecture import json_rules
from tests.architecture.source import parse


@pytest.mark.parametrize(
    "text",
    [
        "def f(data): return msgspec.json.decode(%s)",
        "def f(data): return msgspec.json.decode(%s, type=int)",
        "def f(data): return json.loads(%s)",
        "_D = msgspec.json.Decoder(int)\ndef f(data): return _D.decode(%s)",
        "_d = msgspec.json.Decoder(int).decode\ndef f(data): return _d(%s)",
        "_d: D[int] = msgspec.json.Decoder(int)\ndef f(data): return _d.decode_lines(%s)",
        "def f(data): return msgspec.json.Decoder(int).decode(%s)",
        "def f(d: msgspec.json.Decoder[T], data): return d.decode(%s)",
        "class A:\n    def __init__(self):\n        self.d = msgspec.json.Decoder(int)\n    def f(self): self.d.decode(%s)",
    ],
)
def test_unchecked_decoding(text: str) -> None:
    """A text that is decoded without a check is found, unless its function is excused."""
    source, line = parse("a", text % "data"), text.count("\n") + 1
    place = ("a", "A.f" if "class" in text else "f")

    assert [f"a.py:{line}: the text has not passed shallow()"] == json_rules.unchecked_decoding([source], ())
    assert [] == json_rules.unchecked_decoding([source], [place])
    for checked in ("shallow_text(data)", "shallow_text(data.replace(a, b))"):
        assert [] == json_rules.unchecked_decoding([parse("a", text % checked)], ())
    for unchecked in ("shallow(data) and data", "data=data"):
        assert 1 == len(json_rules.unchecked_decoding([parse("a", text % unchecked)], ()))


def test_text_for_the_standard_decoder() -> None:
    """Bytes suffice for msgspec, which reads UTF-8 only; ``json.loads`` needs text."""
    sources = [parse("a", f"def f(data): return {name}(shallow(data))") for name in json_rules.DECODING]

    assert 2 == len(json_rules.unchecked_decoding(sources, ()))


@pytest.mark.parametrize(
    "text",
    [
        *("from json import loads", "from msgspec.json import Decoder", "from msgspec import json"),
        *("import json as j", "import msgspec as m", "import msgspec.json as j", "json.JSONDecoder().decode(data)"),
    ],
)
def test_imported_functions(text: str) -> None:
    """An import or a decoder class that would hide calls from the rule is found."""
    [found] = json_rules.unchecked_decoding([parse("a", text)], ())

    assert found.startswith("a.py:1: import the module of ")


def test_unused_excuses() -> None:
    """An excuse for a function without an unchecked call is found; text codecs and encoders are permitted."""
    source = parse("a", "def f(data): return data.decode(errors), msgspec.json.encode(data)")

    assert ["a: f needs no excuse"] == json_rules.unchecked_decoding([source], [("a", "f")])
