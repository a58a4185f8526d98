"""HTTP request as the services read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote

import msgspec

from triclinium_core.json_depth import bounded

_INTEGER = re.compile(r"-?[0-9]{1,20}")
"""Integer of up to 20 ASCII digits, with an optional minus sign.

``int`` alone accepts blanks, underscores and digits of other scripts, and raises beyond 4,300 digits.
"""


def integer_of(text: str, least: int, most: int) -> int | None:
    """Return a string of a request as an integer; None if it is not an integer or is out of range."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if least <= number <= most else None


class FakeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One complete request; ``headers`` has lower-case names."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def segments(self) -> tuple[str, ...]:
        """Parts of the path, decoded separately, because a name may contain a slash."""
        path = self.target.partition("?")[0]
        return tuple(unquote(part) for part in path.strip("/").split("/")) if path.strip("/") else ()

    @property
    def parameters(self) -> dict[str, str]:
        """Query parameters of the target; the last value of a repeated name."""
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    @property
    def form(self) -> dict[str, str]:
        """Fields of the body, read as a form. Any other body may yield meaningless fields."""
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    def document(self) -> dict[str, object] | None:
        """Return the body as a JSON object, or None if the body is not a JSON object, or is nested too deeply."""
        try:
            return msgspec.json.decode(bounded(self.body), type=dict[str, object])
        except (ValueError, RecursionError):
            return None
