"""Analysis of a document by a search index with a dynamic mapping and the analyzer ``standard``.

Source: bleve ``mapping/document.go`` (dynamic fields), ``analysis/analyzer/standard``, ``analysis/lang/en/stop_words_en.go``;
bleve_index_api ``indexing_options.go`` and ``analysis.go`` (token frequencies); cbft ``pindex_rest_handlers.go``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

WORD = re.compile("\\w+(?:['.\u2019]\\w+)*")
"""A word: letters, digits and underscores, with apostrophes and full stops between them."""

_STOP_WORDS = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it
its itself they them their theirs themselves what which who whom this that these those am is are was were be been being
have has had having do does did doing would should could ought i'm you're he's she's it's we're they're i've you've
we've they've i'd you'd he'd she'd we'd they'd i'll you'll he'll she'll we'll they'll isn't aren't wasn't weren't
hasn't haven't hadn't doesn't don't didn't won't wouldn't shan't shouldn't can't cannot couldn't mustn't let's that's
who's what's here's there's when's where's why's how's a an the and but if or because as until while of at by for with
about against between into through during before after above below to from up down in out on off over under again
further then once here there when where why how all any both each few more most other some such no nor not only own
same so than too very
"""

STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Words that the analyzer omits, in lower case."""

_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?| \d\d:\d\d:\d\d(?: [+-]\d{4})?)?", re.ASCII
)
"""Text that a dynamic mapping reads as a date if its numbers are in range."""


class Field(NamedTuple):
    """A field of a document."""

    path: str
    """Names, joined by dots."""
    positions: tuple[int, ...]
    """Positions in the arrays that contain the field."""
    text: str
    is_term: bool = False
    """Whether the text is one term, such as that of a boolean."""


class NotAnalyzed(Exception):
    """Exception for a mapping or a value that this analysis does not support; the text names it."""


def check_mapping(definition: Mapping[str, object]) -> None:
    """Raise NotAnalyzed unless an index maps every field dynamically with the analyzer ``standard``."""
    params = definition.get("params")
    mapping = params.get("mapping") if isinstance(params, Mapping) else None
    if not isinstance(mapping, Mapping):
        return
    default = mapping.get("default_mapping")
    parts = {
        **(default if isinstance(default, Mapping) else {}),
        **{name: mapping.get(name) for name in ("types", "analysis")},
    }
    if mapping.get("default_analyzer", "standard") not in ("", "standard"):
        raise NotAnalyzed("default_analyzer")
    for name in ("types", "analysis", "properties"):
        if parts.get(name):
            raise NotAnalyzed(name)
    if not parts.get("dynamic", True) or not parts.get("enabled", True):
        raise NotAnalyzed("default_mapping")


def analyze(document: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the tokens of each field of a document, by term, in the form of the service.

    Raises:
        NotAnalyzed: a field is a number or a date.
    """
    return [_tokens_of(field) for field in _fields("", (), document)]


def _fields(path: str, positions: tuple[int, ...], value: object) -> Iterator[Field]:
    match value:
        case Mapping():
            for name, each in value.items():
                yield from _fields(f"{path}.{name}" if path else name, positions, each)
        case list():
            for position, each in enumerate(value):
                yield from _fields(path, (*positions, position), each)
        case bool():
            yield Field(path, positions, "T" if value else "F", is_term=True)
        case str() if _is_date(value):
            raise NotAnalyzed(f"a date in {path}")
        case str():
            yield Field(path, positions, value)
        case None:
            pass
        case _:
            raise NotAnalyzed(f"a number in {path}")


def _is_date(text: str) -> bool:
    """Return whether a dynamic mapping reads a text as a date.

    Source: bleve ``analysis/datetime/optional/optional.go``.
    """
    if _DATE.fullmatch(text) is None:
        return False
    try:
        datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
    except ValueError:
        return False
    return True


def _tokens_of(field: Field) -> Mapping[str, object]:
    places: dict[str, list[Mapping[str, object]]] = {}
    text, seen, end = field.text, 0, 0
    for position, found in enumerate(WORD.finditer(text), 1):
        # Encode each part of the text once: the offsets are in bytes.
        start = end + _size_of(text[seen : found.start()])
        seen, end = found.end(), start + _size_of(found[0])
        term = found[0] if field.is_term else found[0].lower()
        if term in STOP_WORDS:
            continue
        places.setdefault(term, []).append(
            {
                "Field": field.path,
                "ArrayPositions": list(field.positions),
                "Start": start,
                "End": end,
                "Position": position,
            }
        )
    return {term: {"Term": _encoded(term), "Locations": found} for term, found in places.items()}


def _encoded(term: str) -> str:
    return base64.b64encode(term.encode("utf-8", "surrogatepass")).decode()


def _size_of(text: str) -> int:
    """Return the size of a text in bytes of UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))
