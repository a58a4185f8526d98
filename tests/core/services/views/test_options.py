"""Options of a view query: their parameters, and invalid arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from tests.refusals import refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.services.views.options import (
    DesignDocumentNamespace,
    ViewErrorMode,
    ViewOptions,
    ViewOrdering,
    ViewScanConsistency,
)


@rows(("options", "expected"), [
        ({}, {}),
        ({"limit": 5, "skip": 0, "group_level": 2}, {"limit": "5", "skip": "0", "group_level": "2"}),
        ({"reduce": False, "group": True}, {"reduce": "false", "group": "true"}),
        ({"inclusive_end": False}, {"inclusive_end": "false"}),
        ({"scan_consistency": ViewScanConsistency.REQUEST_PLUS}, {"stale": "false"}),
        ({"scan_consistency": ViewScanConsistency.UPDATE_AFTER}, {"stale": "update_after"}),
        ({"scan_consistency": ViewScanConsistency.NOT_BOUNDED}, {"stale": "ok"}),
        ({"order": ViewOrdering.ASCENDING}, {"descending": "false"}),
        ({"order": ViewOrdering.DESCENDING}, {"descending": "true"}),
        ({"on_error": ViewErrorMode.CONTINUE}, {"on_error": "continue"}),
        ({"on_error": ViewErrorMode.STOP}, {"on_error": "stop"}),
        ({"debug": True}, {"debug": "true"}),
        ({"debug": False}, {}),
        ({"key": "a"}, {"key": '"a"'}),
        ({"key": 0}, {"key": "0"}),
        ({"key": False}, {"key": "false"}),
        ({"startkey": ["a", None], "endkey": ["a", {}]}, {"startkey": '["a",null]', "endkey": '["a",{}]'}),
        ({"startkey_docid": "hello", "endkey_docid": "é"}, {"startkey_docid": "hello", "endkey_docid": "é"}),
        ({"raw": {"full_set": "true", "key": "null"}}, {"full_set": "true", "key": "null"}),
        ({"raw": {"x": ""}}, {"x": ""}),
    ])  # fmt: skip
def test_parameters(options: Mapping[str, object], expected: Mapping[str, str]) -> None:
    """Each option that is set has the parameter of SDK-RFC 0051; the query string omits the other options."""
    made = ViewOptions(**options)  # type: ignore[arg-type]

    assert expected == dict(made.parameters)
    assert made.keys is None


@rows(("keys", "expected"), [([], b"[]"), (["a", 5, None], b'["a",5,null]'), ((["a"], {}), b'[["a"],{}]')])
def test_keys(keys: list[object], expected: bytes) -> None:
    """Several keys are not sent in the query string."""
    options = ViewOptions(keys=keys)

    assert expected == options.keys
    assert () == options.parameters


def test_lists_are_copied() -> None:
    """If the caller changes a list after creating the options, the options do not change."""
    keys, key = ["a"], ["b"]
    options = ViewOptions(keys=keys, key=key)
    keys.append("c")
    key.append("c")

    assert ViewOptions(keys=["a"], key=["b"]) == options


COUNT = (-1, 1.5, True, "1", 2**32)
FLAG = (1, "true")


@rows(("parameter", "values"), [
        ("limit", COUNT),
        ("skip", COUNT),
        ("group_level", COUNT),
        ("reduce", FLAG),
        ("group", FLAG),
        ("inclusive_end", FLAG),
        ("debug", (None, *FLAG)),
        ("scan_consistency", ("ok", ViewOrdering.ASCENDING)),
        ("order", ("false", True)),
        ("on_error", ("stop", 5)),
        ("startkey_docid", ("", 5, "\ud800")),
        ("endkey_docid", ("", 5)),
        ("keys", ("ab", b"ab", 5, {"a": 1}, {1})),
        ("raw", ([], "a", 5)),
    ])  # fmt: skip
def test_invalid_arguments(parameter: str, values: tuple[object, ...]) -> None:
    """An invalid argument raises an error that names the argument."""
    for value in values:
        refused(parameter, ViewOptions, **{parameter: value})


def test_invalid_raw_options() -> None:
    """A raw option that is not text, or that has the name of another option, is refused."""
    refused("a name in raw", ViewOptions, raw={"": "x"})
    refused("raw['x']", ViewOptions, raw={"x": 5})
    refused("raw", ViewOptions, limit=5, raw={"limit": "6"})
    refused("raw", ViewOptions, order=ViewOrdering.ASCENDING, raw={"descending": "true"})


@rows("parameter", ["key", "startkey", "endkey", "keys"])
def test_keys_must_be_json(parameter: str) -> None:
    """Keys that JSON cannot represent are refused."""
    for value in ([math.nan], [object()], ["\ud800"]):
        with pytest.raises(errors.EncodingFailureException):
            ViewOptions(**{parameter: value})  # type: ignore[arg-type]


def test_repr() -> None:
    """The ``repr`` of options shows only their names, because keys may be personal data."""
    assert "ViewOptions(limit, key, keys)" == repr(ViewOptions(limit=5, key="ada", keys=["ada"]))


def test_namespaces() -> None:
    """Each namespace is the prefix of the names of its design documents."""
    assert ["", "dev_"] == [namespace.value for namespace in DesignDocumentNamespace]
