"""Tokens and expressions of SQL++ that a fake query service supports: constants, parameters, and fields of rows.

``SELECT 1 AS one``, ``SELECT RAW $name``, ``SELECT idx.* FROM system:indexes AS idx WHERE … ORDER BY …``: literals,
parameters, fields, ``=``, ``!=``, ``IS MISSING``, ``IS NULL``, ``NOT``, ``AND`` and ``OR``.

Source: Couchbase Server documentation, "SQL++ Language Reference": Literals, SELECT, Parameters; couchbase/query
``parser/n1ql/n1ql.nex`` (strings, identifiers, comments) and ``ProcessEscapeSequences`` of ``util.go``;
``expression/logic_not.go``, ``logic_and.go`` and ``logic_or.go`` (NULL, MISSING and operands that are not boolean).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from triclinium_core.json_depth import shallow
from triclinium_core.testing.fakes.services.fake_request import integer_of

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<comment> --[^\n\r]* | /\*.*?\*/ )
    | (?P<string> "(?:[^"\\]|\\.)*"? | '(?:[^'\\]|\\.|'')*'? )
    | (?P<number> \d+(?:\.\d+)?(?:[eE][+-]?\d+)? )
    | (?P<escaped> `(?:[^`\\]|\\.|``)*`? )
    | (?P<parameter> [$@][A-Za-z0-9_]+ | \? )
    | (?P<word> [A-Za-z_][A-Za-z0-9_]* )
    | (?P<sign> == | != | <> | [-=(){}\[\],:.*] )
    | (?P<other> \S )
    )""",
    re.VERBOSE | re.DOTALL,
)

_INNER = re.compile(
    r"""\\u(?P<code>[0-9A-Fa-f]{4}) | \\(?P<escape>.) | (?P<doubled>``|'') | (?P<plain>[^\\])""", re.VERBOSE | re.DOTALL
)
_ESCAPES: Mapping[str, str] = {
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    **{sign: sign for sign in "/\\\"'`"},
}

_NESTING_MAX = 50

T = TypeVar("T")


class NotUnderstood(Exception):
    """Exception for a statement that the fake does not support."""


class NoSuchParameter(Exception):
    """Exception for a parameter without a value; the message is the parameter's name."""


class Missing:
    """Value of a field that does not exist."""


MISSING = Missing()

Names = Mapping[str, object]
"""Values of the names in a scope."""


class Expression(Protocol):
    """An expression that has a value in a scope."""

    def __call__(self, scope: Names, /) -> object:
        """Return the value of the expression; ``MISSING`` if it has no value."""


class ParameterValues(NamedTuple):
    """Parameter values of a request."""

    named: Mapping[str, object]
    """Values by name, without the dollar sign."""
    positional: Sequence[object]


class SqlToken(NamedTuple):
    """A token of a statement, and its position."""

    kind: str
    text: str
    start: int = 0

    @property
    def keyword(self) -> str:
        """Text of a word or a sign, in upper case; empty for any other token."""
        return self.text.upper() if self.kind in ("word", "sign") else ""


def tokens_of(statement: str) -> list[SqlToken]:
    """Return the tokens of a statement, without comments and a final semicolon.

    A string or an identifier that the service refuses becomes a token of kind ``malformed``; a character that
    starts no other token becomes a token of kind ``other``.
    """
    tokens = []
    for found in _TOKEN.finditer(statement):
        kind = found.lastgroup or ""
        token = SqlToken(kind, found[kind], found.start(kind))
        if kind in ("string", "escaped") and _is_malformed(token.text):
            token = token._replace(kind="malformed")
        if kind != "comment":
            tokens.append(token)
    return tokens[:-1] if tokens and tokens[-1].text == ";" else tokens


class SqlReader:
    """Reader of tokens in order; every ``read_…`` method raises NotUnderstood for unexpected tokens."""

    def __init__(self, tokens: Sequence[SqlToken], parameters: ParameterValues) -> None:
        self._tokens = tokens
        self._place = 0
        self._parameters = parameters
        self._marks = 0
        """Number of question marks read so far: each is the next positional parameter."""
        self._depth = 0
        self.last_field: str | None = None
        """Name of the field if the last expression is a field; None otherwise."""

    @property
    def is_at_end(self) -> bool:
        """Whether all tokens are read."""
        return self._place == len(self._tokens)

    def peek(self) -> SqlToken:
        """Return the next token without reading it; an empty token at the end."""
        return SqlToken("", "") if self.is_at_end else self._tokens[self._place]

    def take(self, *keywords: str) -> bool:
        """Read these words or signs if they are the next tokens, and return whether they are."""
        coming = self._tokens[self._place : self._place + len(keywords)]
        if [token.keyword for token in coming] != list(keywords):
            return False
        self._place += len(keywords)
        return True

    def expect(self, *keywords: str) -> None:
        """Read these words or signs; raise NotUnderstood if other tokens follow."""
        if not self.take(*keywords):
            raise NotUnderstood(self.peek().text)

    def end(self) -> None:
        """Raise NotUnderstood unless all tokens are read."""
        if not self.is_at_end:
            raise NotUnderstood(self.peek().text)

    def read_name(self) -> str:
        """Return a name, plain or in backticks."""
        token = self.peek()
        if token.kind not in ("word", "escaped"):
            raise NotUnderstood(token.text)
        self._place += 1
        return _name(token)

    def skip_to(self, statement: str, *keywords: str) -> str:
        """Return the text up to the first of these words or signs outside of brackets, or to the end."""
        start, end, depth = self.peek().start, self.peek().start, 0
        while not self.is_at_end:
            token = self.peek()
            if token.kind == "malformed":
                raise NotUnderstood(token.text)
            if not depth and token.keyword in keywords:
                break
            depth += (token.keyword in ("(", "[", "{")) - (token.keyword in (")", "]", "}"))
            end = token.start + len(token.text)
            self._place += 1
        return statement[start:end]

    def read_text(self) -> str:
        """Return a name or a string."""
        if self.peek().kind != "string":
            return self.read_name()
        self._place += 1
        return unescaped(self._tokens[self._place - 1].text)

    def read_path(self) -> tuple[str, ...]:
        """Return a dotted name as its parts, without a leading namespace."""
        names = [self.read_name()]
        if self.take(":"):
            names = [self.read_name()]
        while self.take("."):
            names.append(self.read_name())
        return tuple(names)

    def take_name_before(self, *keywords: str) -> str | None:
        """Read a name and one of ``keywords``, and return the name; return None if other tokens are next."""
        name, behind = [*self._tokens[self._place : self._place + 2], SqlToken("", ""), SqlToken("", "")][:2]
        if name.kind not in ("word", "escaped", "string") or behind.keyword not in keywords:
            return None
        self._place += 2
        return _name(name)

    def take_every(self) -> str | None:
        """Read and return a name if ``.*`` follows it. Otherwise return None."""
        name, *signs = [*self._tokens[self._place : self._place + 3], SqlToken("", "")]
        if [sign.text for sign in signs[:2]] != [".", "*"] or name.kind not in ("word", "escaped"):
            return None
        self._place += 3
        return _name(name)

    def read_value(self) -> object:
        """Return the value of an expression without names."""
        return self.read_expression()({})

    def read_list(self, read: Callable[[], T], end: str) -> list[T]:
        """Return the comma-separated items that ``read`` reads, up to and including the sign ``end``."""
        items: list[T] = []
        while not self.take(end):
            if items:
                self.expect(",")
            items.append(read())
        return items

    def read_expression(self) -> Expression:
        """Return an expression that can be evaluated in a scope."""
        self._depth += 1
        if self._depth > _NESTING_MAX:
            raise NotUnderstood("too deep nesting")
        left = self._read_conjunction()
        while self.take("OR"):
            left = _joined(left, self._read_conjunction(), decisive=True)
        self._depth -= 1
        self.last_field = left.path[-1] if isinstance(left, _Field) else None
        return left

    def _read_conjunction(self) -> Expression:
        left = self._read_negation()
        while self.take("AND"):
            left = _joined(left, self._read_negation(), decisive=False)
        return left

    def _read_negation(self) -> Expression:
        if self.take("NOT"):
            return _negated(self._read_comparison())
        return self._read_comparison()

    def _read_comparison(self) -> Expression:
        left = self._read_primary()
        for sign, expected in (("=", True), ("==", True), ("!=", False), ("<>", False)):
            if self.take(sign):
                return _compared(left, self._read_primary(), expected)
        if self.take("IS"):
            negated = self.take("NOT")
            wanted: object = MISSING if self.take("MISSING") else None
            if wanted is None:
                self.expect("NULL")
            return lambda scope: (left(scope) is wanted) is not negated
        return left

    def _read_primary(self) -> Expression:
        token = self.peek()
        constants = {"TRUE": True, "FALSE": False, "NULL": None, "MISSING": MISSING}
        if token.keyword in constants:
            self._place += 1
            return _constant(constants[token.keyword])
        if token.kind in ("word", "escaped"):
            return _Field(self.read_path())
        self._place += 1
        match token.kind, token.text:
            case "string", text:
                return _constant(unescaped(text))
            case "number", text:
                return _constant(_number(text))
            case "parameter", text:
                return _constant(self._value_of(text))
            case "sign", "-":
                number = self.peek()
                if number.kind != "number":
                    raise NotUnderstood("-")
                self._place += 1
                return _constant(_number("-" + number.text))
            case "sign", "(":
                inner = self.read_expression()
                self.expect(")")
                return inner
            case "sign", "[":
                items = self.read_list(self.read_value, "]")
                # A missing item of an array is null.
                return _constant([None if item is MISSING else item for item in items])
            case "sign", "{":
                pairs = self.read_list(self._read_pair, "}")
                return _constant({name: value for name, value in pairs if value is not MISSING})
            case _, text:
                raise NotUnderstood(text)

    def _read_pair(self) -> tuple[str, object]:
        token = self.peek()
        if token.kind != "string":
            raise NotUnderstood(token.text)
        self._place += 1
        self.expect(":")
        return unescaped(token.text), self.read_value()

    def _value_of(self, parameter: str) -> object:
        if parameter == "?":
            self._marks += 1
            parameter = f"${self._marks}"
        name = parameter[1:]
        if name.isdecimal():
            number = integer_of(name, 1, len(self._parameters.positional))
            if number is not None:
                return self._parameters.positional[number - 1]
        elif name in self._parameters.named:
            return self._parameters.named[name]
        raise NoSuchParameter(parameter)


def _constant(value: object) -> Expression:
    return lambda scope: value


class _Field(NamedTuple):
    """Value of a field."""

    path: tuple[str, ...]

    def __call__(self, scope: Names, /) -> object:
        found: object = scope
        for name in self.path:
            found = found.get(name, MISSING) if isinstance(found, Mapping) else MISSING
        return found


def _negated(operand: Expression) -> Expression:
    def value(scope: Names) -> object:
        found = operand(scope)
        return found if _is_unknown(found) else not found

    return value


def _joined(left: Expression, right: Expression, *, decisive: bool) -> Expression:
    """Return the conjunction, for which one false operand is decisive, or the disjunction, for which a true one is."""

    def value(scope: Names) -> object:
        sides = left(scope), right(scope)
        if any(bool(side) is decisive for side in sides if not _is_unknown(side)):
            return decisive
        unknown = (None, MISSING) if decisive else (MISSING, None)
        return next((each for each in unknown if each in sides), not decisive)

    return value


def _is_unknown(value: object) -> bool:
    return value is None or value is MISSING


def _compared(left: Expression, right: Expression, expected: bool) -> Expression:
    def value(scope: Names) -> object:
        sides = left(scope), right(scope)
        if MISSING in sides:
            return MISSING
        return None if None in sides else (sides[0] == sides[1]) is expected

    return value


def _number(text: str) -> object:
    try:
        number: object = msgspec.json.decode(shallow(text))
    except ValueError as error:
        # The number is not valid in JSON, or too large for a float.
        raise NotUnderstood(text) from error
    return number


def unescaped(text: str) -> str:
    """Return the content of a string or an escaped identifier.

    A quotation mark inside is doubled or escaped; between ``"`` it must be escaped.

    Raises:
        NotUnderstood: ``text`` does not end, or an escape or a quotation mark inside is invalid.
    """
    quote, inner = text[0], text[1:-1]
    if len(text) < 2 or text[-1] != quote:
        raise NotUnderstood(text)
    parts, position = [], 0
    while position < len(inner):
        found = _INNER.match(inner, position)
        if found is None:
            raise NotUnderstood(text)
        position = found.end()
        parts.append(_meaning(found, quote))
    # Two escapes may be the halves of one character. A single half becomes the replacement character.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _meaning(found: re.Match[str], quote: str) -> str:
    """Return the characters of one piece of a string.

    Raises:
        NotUnderstood: the piece is invalid.
    """
    if found["code"]:
        return chr(int(found["code"], 16))
    if found["escape"]:
        if found["escape"] not in _ESCAPES:
            raise NotUnderstood(found[0])
        return _ESCAPES[found["escape"]]
    if found["doubled"]:
        return quote if found["doubled"][0] == quote else found["doubled"]
    if found["plain"] == quote:
        raise NotUnderstood(quote)
    return found["plain"]


def _is_malformed(text: str) -> bool:
    try:
        return not unescaped(text) and text[0] == "`"
    except NotUnderstood:
        return True


def _name(token: SqlToken) -> str:
    return token.text if token.kind == "word" else unescaped(token.text)
