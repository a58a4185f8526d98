"""The limit of nesting in the core's decoders of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, strategies as st

from triclinium_core import json_depth
from triclinium_core.decision_tape import reading
from triclinium_core.json_depth import LEVELS_MAX, LEVELS_REFUSED, TooDeep, shallow, shallow_text
from triclinium_core.kv.operation.failure import parse_error_body
from triclinium_core.kv.operation.manifest.manifest_codec import decode_manifest
from triclinium_core.kv.topology.cluster_config import parse_cluster_config
from triclinium_core.retry.couchbase import Service, parse_error_map
from triclinium_core.retry.couchbase.tables.service_answers import read_answer
from triclinium_core.services import received
from triclinium_core.services.answer.context_ids import foreign_id_in
from triclinium_core.services.answer.rows import RowSplitter
from triclinium_core.services.json_values import decode_json
from triclinium_core.services.search import result as search_result
from triclinium_core.services.service_request import HttpResponse
from triclinium_core.services.views import result as views_result
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.script import FakeScript
from triclinium_core.testing.fakes.services.script_file import load_script
from triclinium_core.testing.fakes.store import json_values
from triclinium_core.testing.fakes.store.documents import is_json
from triclinium_core.tools.vectors import questions
from triclinium_core.transcoding.transcoder import JsonTranscoder

HOSTILE = 60_000
"""Number of levels that crashes Python in WebAssembly if a decoder receives them."""


def nested(levels: int) -> bytes:
    """Return nested arrays around a string with more brackets."""
    return b"[" * levels + rb'"]]\"[[' + b"[" * LEVELS_MAX + b'"' + b"]" * levels


class Site(NamedTuple):
    """Decoder of a text. In the text, ``%b`` stands for a value within ``levels`` levels."""

    name: str
    text: bytes
    levels: int
    decode: Callable[[bytes], object]

    def outcome(self, value: bytes) -> object:
        """Return the result for a text with the value, or the type of the exception."""
        try:
            return self.decode(self.text.replace(b"%b", value))
        except Exception as error:
            return type(error)


def read_response(data: bytes) -> object:
    """Return the body of a response that lists an error, and whether another server sent it."""
    answer = read_answer(Service.QUERY, 200, data)
    return answer.body, answer.is_foreign


def split(body: bytes) -> object:
    """Feed a body to the splitter in two pieces; return the rows, and the document around them."""
    splitter, half = RowSplitter("results"), body.find(b"!") + 1
    return splitter.feed(body[:half]) + splitter.feed(body[half:]), splitter.finish()


def fake_document(body: bytes) -> object:
    """Return the JSON object in a request to a fake node."""
    return FakeRequest(method="POST", target="/", headers={}, body=body).document()


END = msgspec.json.Decoder(dict[str, object])
SITES = [
    Site("document", b"%b", 0, lambda data: JsonTranscoder().decode(data, 0, object)),
    Site("document of a type", b'{"a":%b}', 1, lambda data: JsonTranscoder().decode(data, 0, dict[str, object])),
    Site("row of a type", b"%b", 0, lambda data: decode_json(data, list, "the row is")),
    Site("members", b'{"a":%b}', 1, lambda data: received.members_of(msgspec.Raw(data))),
    Site("body", b'{"a":%b}', 1, lambda data: HttpResponse(200, data).body_as(dict[str, msgspec.Raw])),
    Site("service response", b'{"errors":[{"code":1}],"a":%b}', 1, read_response),
    Site("context id", b'{"clientContextID":"theirs","a":%b}', 1, lambda data: foreign_id_in("ours", data)),
    Site("hit", b'{"index":"i","id":"d","a":%b}', 1, search_result.decode_row),
    Site("row of a view", b'{"id":"d","key":1,"value":%b}', 1, views_result.decode_row),
    Site("document around rows", b'{"results":[1],"a":%b}', 1, split),
    Site("first row", b'{"results":[%b]}', 1, split),
    Site("row after others", b'{"results":[["a"],["a"],["a"],["a!"],%b,["a"]]}', 1, split),
    Site("cluster config", b'{"rev":1,"a":%b}', 1, lambda data: parse_cluster_config(data, host="h")),
    Site("manifest", b'{"uid":"1","scopes":[],"a":%b}', 1, decode_manifest),
    Site("error body", b'{"error":{"context":"c"},"a":%b}', 1, parse_error_body),
    Site("error map", b'{"version":2,"revision":1,"errors":{},"a":%b}', 1, parse_error_map),
    Site("question", b'{"family":"f","a":%b}', 1, questions.decode),
    Site("end of a tape", b'{"line":"end","a":%b}', 1, lambda data: reading.decoded(END, 1, data, "the end")),
    Site("request to a fake node", b'{"a":%b}', 1, fake_document),
    Site("script", b'[{"statement":"s","rows":[%b]}]', 3, lambda data: load_script(FakeScript(), data)),
    Site("document of a fake node", b"%b", 0, json_values.decode_json),
    Site("attribute of a fake node", b"%b", 0, is_json),
]


@pytest.mark.parametrize("site", SITES, ids=[site.name for site in SITES])
def test_hostile_nesting(site: Site) -> None:
    """A text that is nested far too deeply, finished or not, ends like invalid JSON, also in WebAssembly."""
    invalid = site.outcome(b"[}")

    assert invalid != site.outcome(nested(LEVELS_MAX - site.levels))
    for deep in (b"[" * HOSTILE, b'{"a":' * (HOSTILE // 5), nested(HOSTILE)):
        assert invalid == site.outcome(deep)


@pytest.mark.parametrize("site", SITES, ids=[site.name for site in SITES])
def test_every_decoder(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where decoders have no guard, a text at the limit is decoded, and a much deeper one ends like invalid JSON."""
    monkeypatch.setattr(json_depth, "IS_GUARDED", False)
    invalid = site.outcome(b"[}")

    assert invalid != site.outcome(nested(LEVELS_MAX - site.levels))
    assert invalid == site.outcome(nested(LEVELS_REFUSED))


def depth_of(text: str) -> int:
    """Return the depth of brackets outside of strings, character by character."""
    depth = deepest = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        else:
            depth += (character in "[{") - (character in "]}")
            deepest = max(deepest, depth)
    return deepest


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Draw text that a decoder may read up to its end: brackets, some of which may stay open, and any strings."""
    text, open_ = "", 0
    strings = st.lists(st.sampled_from(["[", "]", "{", "}", r"\\", r"\"", r"\n", "x", "é"]), max_size=6).map("".join)
    for opens, string in draw(st.lists(st.tuples(st.booleans(), strings | st.none()), max_size=30)):
        if opens or not open_:
            text += draw(st.sampled_from(["[", "{", '{"a":', " ["]))
            open_ += 1
        else:
            text += draw(st.sampled_from("]}"))
            open_ -= 1
        text += "" if string is None else f'"{string}",'
    return text + draw(st.sampled_from(["", '"[[[[[[[[', '"\\', '"']))


@given(texts())
def test_agreement_with_a_slow_counter(text: str) -> None:
    """With blocks of one bracket, a text over twice the limit is refused if and only if it has too many levels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_depth, "IS_GUARDED", False)
        patch.setattr(json_depth, "LEVELS_MAX", 4)
        patch.setattr(json_depth, "_BLOCK_SIZE", 1)
        for encoded in (text, text.encode(), bytearray(text.encode())):
            if depth_of(text) > 4 and len(encoded) > 8:
                with pytest.raises(TooDeep, match="too deeply"):
                    shallow(encoded)
            else:
                assert encoded is shallow(encoded)


@pytest.mark.parametrize("before", [0, 1, 100, 255, 256, 257, 511])
@pytest.mark.parametrize("levels", [LEVELS_MAX, LEVELS_REFUSED])
def test_a_peak_between_two_comparisons(before: int, levels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the deepest level is, a text at the limit is accepted, and one of the refused depth is not."""
    monkeypatch.setattr(json_depth, "IS_GUARDED", False)
    text = b"[" + b"[]," * before + b"[" * (levels - 1) + b"]" * levels

    if levels == LEVELS_MAX:
        assert text is shallow(text)
    else:
        with pytest.raises(TooDeep):
            shallow(text)


@pytest.mark.parametrize("brackets", [b"[]", b"[[]]", b"]["])
def test_a_depth_near_the_limit_takes_few_steps(brackets: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A depth that stays near the limit is compared once for each block, not after each bracket."""
    taken = list[int]()

    def counted(*bounds: int) -> Iterator[int]:
        for start in range(*bounds):
            taken.append(start)
            yield start

    text = b"[" * (LEVELS_MAX - 2) + brackets * 2**18
    monkeypatch.setattr(json_depth, "IS_GUARDED", False)
    monkeypatch.setattr(json_depth, "range", counted, raising=False)
    shallow(text)

    assert len(taken) == -(-len(text) // json_depth._BLOCK_SIZE)


def test_other_encodings() -> None:
    """A body must be UTF-8, with or without its mark: in UTF-16, other characters have the bytes of quotes."""
    hidden = '["\u2222", ' + "[" * HOSTILE

    assert [(None, True)] * 2 == [read_response(hidden.encode(form)) for form in ("utf-16", "utf-16-le")]
    assert "[1]" == shallow_text(b"\xef\xbb\xbf[1]")
