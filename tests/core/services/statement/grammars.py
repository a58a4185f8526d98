r"""Lexers of the query service and of the analytics service, exact only for identifiers, strings and comments.

Source: couchbase/query ``parser/n1ql/n1ql.nex`` and ``ProcessEscapeSequences`` of ``util.go``; AsterixDB ``SQLPP.jj``
with JavaCC's ``JavaCharStream``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hypothesis import strategies as st

HOSTILE = (
    *("\\", "`", "``", '"', "'", "\n", "--", "/*", "*/", "\\u0060", "\\u005c", "\\\\u0060", "\\`", " ON payroll", "."),
)
"""Pieces with a special meaning in one of the grammars."""

NAMES = st.lists(st.sampled_from(HOSTILE) | st.characters(codec="utf-8"), min_size=1).map("".join)
"""Names that are not empty and contain any Unicode characters, many of them special characters of a grammar."""

Token = tuple[str, str]
"""Kind and text of a token; the text of an identifier is its name."""

SIMPLE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class SyntaxFault(Exception):
    """Exception for a statement that the service refuses."""


_QUERY_TOKEN = re.compile(
    r"""[ \t\n\r\f]*(?:
      (?P<comment>--[^\n\r]*|/\*.*?\*/)
    | (?P<identifier>`(?:``|\\`|\\[^`]|[^`\\])*`?)
    | (?P<string>"(?:\\"|\\[^"]|[^"\\])*"?|'(?:''|\\'|\\[^']|[^'\\])*'?)
    | (?P<word>[A-Za-z_][\w$]*)
    | (?P<sign>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ANALYTICS_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:
      (?P<comment>--[^\n\r]*|//[^\n\r]*|/\*.*?\*/)
    | (?P<identifier>`(?:\\["\\/bfnrt`]|``|[^`\\])*`)
    | (?P<string>"(?:\\["\\/bfnrt`]|[^"\\])*"|'(?:\\['\\/bfnrt`]|[^'\\])*')
    | (?P<word>[A-Za-z_][\w$]*)
    | (?P<sign>.)
    )""",
    re.VERBOSE | re.DOTALL,
)


def query_tokens(statement: str) -> list[Token]:
    """Return the tokens that the query service reads. Raise SyntaxFault if the service refuses the statement."""
    return _tokens(_QUERY_TOKEN, statement.rstrip(), _query_name)


def analytics_tokens(statement: str) -> list[Token]:
    """Return the tokens that the analytics service reads. Raise SyntaxFault if the service refuses the statement."""
    return _tokens(_ANALYTICS_TOKEN, _decoded(statement).rstrip(), _analytics_name)


def _tokens(pattern: re.Pattern[str], statement: str, name_of: Callable[[str], str]) -> list[Token]:
    tokens = []
    for found in pattern.finditer(statement):
        kind = str(found.lastgroup)
        if kind == "identifier":
            tokens.append((kind, name_of(found[kind])))
        elif kind != "comment":
            tokens.append((kind, found[kind]))
    return tokens


def _query_name(text: str) -> str:
    """Return the name of an identifier, with its escapes processed from left to right."""
    if len(text) < 2 or text[-1] != "`":
        raise SyntaxFault("missing closing quote")
    name, rest = "", text[1:-1]
    while rest:
        if rest[0] == "`":
            if rest[1:2] != "`":
                raise SyntaxFault("unescaped embedded quote")
            name, rest = name + "`", rest[2:]
        elif rest[0] != "\\":
            name, rest = name + rest[0], rest[1:]
        elif re.match(r"\\u[0-9A-Fa-f]{4}", rest):
            name, rest = name + chr(int(rest[2:6], 16)), rest[6:]
        elif rest[1:2] and rest[1] in SIMPLE:
            name, rest = name + SIMPLE[rest[1]], rest[2:]
        elif rest[1:2] and rest[1] in "/\\\"'`":
            name, rest = name + rest[1], rest[2:]
        else:
            raise SyntaxFault("invalid escape sequence")
    return name


def _decoded(statement: str) -> str:
    r"""Return the input of the lexer: decode ``\uXXXX`` after an even number of backslashes."""
    return re.sub(r"(?<!\\)((?:\\\\)*)\\u+([0-9A-Fa-f]{4})", lambda found: found[1] + chr(int(found[2], 16)), statement)


def _analytics_name(text: str) -> str:
    """Return the name of an identifier; the argument is the complete text that the lexer has matched."""
    return re.sub(r"``|\\(.)", lambda found: SIMPLE.get(found[1], found[1]) if found[1] else "`", text[1:-1])
