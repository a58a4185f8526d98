"""Script of responses in a file: a JSON list of objects.

Each object has a ``statement`` or a ``pattern``, a ``service`` (default: query), and the fields of ``FakeAnswer``.
Several responses to the same statement are sent in order, and the last one repeats. A fault is an object with its
``kind``, the name of the function that creates it, and the arguments of that function:

.. code-block:: json

    [
        {"statement": "SELECT t.* FROM travel AS t", "rows": [{"name": "Ada"}]},
        {"pattern": "SELECT .* FROM busy", "http_status": 503, "body": ""},
        {"statement": "SELECT 2", "rows": [2], "fault": {"kind": "cut_body", "bytes_sent": 40}},
        {"service": "search", "statement": "names", "rows": [{"index": "names", "id": "ada", "score": 1.5}]}
    ]
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from triclinium_core import errors
from triclinium_core.json_depth import shallow
from triclinium_core.retry.couchbase import Service
from triclinium_core.shown import shown
from triclinium_core.testing.fakes.fault_names import SERVICE_FAULTS, make_fault
from triclinium_core.testing.fakes.faults import ServiceFault
from triclinium_core.testing.fakes.services.answers import FakeAnswer
from triclinium_core.testing.fakes.services.faults import hang_up_mid_request
from triclinium_core.testing.fakes.services.script import FakeScript, normalized

ANSWER_FAULTS = tuple(name for name in SERVICE_FAULTS if name != hang_up_mid_request.__name__)
"""Names of the faults that a response can have."""


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One object of the list. A missing field has the default of ``FakeAnswer``."""

    statement: str | None = None
    pattern: str | None = None
    service: Service = Service.QUERY
    rows: Sequence[object] | msgspec.UnsetType = msgspec.UNSET
    repeat: int | msgspec.UnsetType = msgspec.UNSET
    errors: Sequence[Mapping[str, object]] | msgspec.UnsetType = msgspec.UNSET
    metadata: Mapping[str, object] | msgspec.UnsetType = msgspec.UNSET
    http_status: int | msgspec.UnsetType = msgspec.UNSET
    seconds: float | msgspec.UnsetType = msgspec.UNSET
    seconds_between_rows: float | msgspec.UnsetType = msgspec.UNSET
    body: str | msgspec.UnsetType = msgspec.UNSET
    content_type: str | msgspec.UnsetType = msgspec.UNSET
    headers: Mapping[str, str] | msgspec.UnsetType = msgspec.UNSET
    fault: Mapping[str, object] | None = None

    def script_key(self) -> str | re.Pattern[str]:
        """Return the statement or the pattern; raise InvalidArgumentException unless exactly one is set and valid."""
        if (self.statement is None) == (self.pattern is None):
            raise errors.InvalidArgumentException(
                "it must have exactly one of statement and pattern", parameter="script"
            )
        if self.pattern is None:
            assert self.statement is not None
            return normalized(self.statement)
        try:
            return re.compile(self.pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise errors.InvalidArgumentException(
                f"pattern={shown(self.pattern)}: {error}", parameter="script"
            ) from error

    def answer(self) -> FakeAnswer:
        """Return the response."""
        names = set(FakeAnswer.__struct_fields__) - {"fault"}
        given = {name: value for name in names if (value := getattr(self, name)) is not msgspec.UNSET}
        return FakeAnswer(**given, fault=None if self.fault is None else _made(self.fault))


_NO_JSON = (msgspec.MsgspecError, ValueError, RecursionError)
"""Exceptions that the decoder raises, including for text that is not UTF-8 and for deep nesting."""


def load_script(script: FakeScript, text: str | bytes) -> None:
    """Add the responses of a file to a script. If a response is invalid, add no response.

    Raises:
        InvalidArgumentException: the file is invalid; the message has the reason and, if known, the invalid object.
    """
    try:
        objects = msgspec.json.decode(shallow(text), type=list[msgspec.Raw])
    except _NO_JSON as error:
        raise errors.InvalidArgumentException(
            f"the script is not a JSON list of objects: {error}", parameter="script"
        ) from error
    answers: dict[tuple[Service, str | re.Pattern[str]], list[FakeAnswer]] = {}
    for number, raw in enumerate(objects, 1):
        try:
            entry = msgspec.json.decode(shallow(bytes(raw)), type=_Entry)
            answers.setdefault((entry.service, entry.script_key()), []).append(entry.answer())
        except (*_NO_JSON, errors.InvalidArgumentException) as error:
            why = error.message if isinstance(error, errors.InvalidArgumentException) else error
            raise errors.InvalidArgumentException(
                f"object {number} of the script: {why}", parameter="script"
            ) from error
    for (service, script_key), given in answers.items():
        script.answer(script_key, *given, service=service)


def _made(described: Mapping[str, object]) -> ServiceFault:
    kind = described.get("kind")
    if not isinstance(kind, str) or kind not in ANSWER_FAULTS:
        raise errors.InvalidArgumentException(
            f"fault: kind={kind!r} must be one of {', '.join(sorted(ANSWER_FAULTS))}", parameter="script"
        )
    fault = make_fault(kind, **{name: value for name, value in described.items() if name != "kind"})
    assert isinstance(fault, ServiceFault)
    return fault
