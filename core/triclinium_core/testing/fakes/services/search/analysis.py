"""Analysis of a document by a search index with a dynamic mapping and the analyzer ``standard``.

Source: bleve ``mapping/document.go`` (dynamic fields), ``analysis/analyzer/standard``, ``analysis/lang/en/stop_words_en.go``;
bleve_index_api ``indexing_options.go`` and ``analysis.go`` (token frequencies); cbft ``pindex_rest_handlers.go``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping

WORD = re.compile("\\w+(?:['.\u2019]\\w+)*")
"""A word: letters and digits, with apostrophes and full stops between them."""

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

Field = tuple[str, tuple[int, ...], str, bool]
"""Dotted path, positions in arrays, text, and whether the text is one term, as of a boolean."""


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
        NotAnalyzed: a field is a number.
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
            yield path, positions, "T" if value else "F", True
        case str():
            yield path, positions, value, False
        case None:
            pass
        case _:
            raise NotAnalyzed(f"the number in {path}")


def _tokens_of(field: Field) -> Mapping[str, object]:
    path, positions, text, is_whole = field
    tokens: dict[str, dict[str, object]] = {}
    places: dict[str, list[Mapping[str, object]]] = {}
    seen, end = 0, 0
    for position, found in enumerate(WORD.finditer(text), 1):
        # Encode each part of the text once: the offsets are in bytes.
        start = end + _size_of(text[seen : found.start()])
        seen, end = found.end(), start + _size_of(found[0])
        term = found[0] if is_whole else found[0].lower()
        if term in STOP_WORDS:
            continue
        places.setdefault(term, []).append(
            {
                "Field": path,
                "ArrayPositions": list(positions),
                "Start": start,
                "End": end,
                "Position": position,
            }
        )
        encoded = base64.b64encode(term.encode("utf-8", "surrogatepass")).decode()
        tokens[term] = {"Term": encoded, "Locations": places[term]}
    return tokens


def _size_of(text: str) -> int:
    """Return the size of a text in bytes of UTF-8."""
    return len(text.encode("utf-8", "surrogatepass"))
