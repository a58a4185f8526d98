"""Identifiers in statements of the query and analytics services."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given

from tests.core.services.statement.grammars import NAMES, SyntaxFault, Token, analytics_tokens, query_tokens
from tests.rows import rows
from triclinium_core.services.statement.identifiers import analytics_identifier, query_identifier
from triclinium_core.testing.fakes.services.statements.sqlpp import ParameterValues, SqlReader, tokens_of


@given(NAMES)
def test_a_hostile_name_is_one_identifier(name: str) -> None:
    """Both services, and the fake of the query service, read the identifier of a hostile name as exactly that name."""
    expected = [("word", "DROP"), ("word", "INDEX"), ("identifier", name), ("word", "ON"), ("identifier", "b")]
    reader = SqlReader(tokens_of(f"DROP INDEX {query_identifier(name)} ON `b`"), ParameterValues({}, []))
    reader.expect("DROP", "INDEX")

    assert expected == query_tokens(f"DROP INDEX {query_identifier(name)} ON `b`")
    assert expected == analytics_tokens(f"DROP INDEX {analytics_identifier(name)} ON `b`")
    assert name == reader.read_name()
    assert reader.take("ON")
    assert "b" == reader.read_name()
    assert reader.is_at_end


@rows(
    ("name", "of_query", "of_analytics"),
    [
        ("a", "`a`", "`a`"),
        ("a`b", r"`a\u0060b`", "`a``b`"),
        ("\\", r"`\\`", r"`\\`"),
        ("\\`", r"`\\\u0060`", r"`\\```"),
        (r"\u0060", r"`\\u0060`", r"`\\u0060`"),
        ("#primary", "`#primary`", "`#primary`"),
        ("a/b %2F ü", "`a/b %2F ü`", "`a/b %2F ü`"),
    ],
)
def test_identifiers(name: str, of_query: str, of_analytics: str) -> None:
    """Both services get a doubled backslash; query gets an escaped backtick and analytics a doubled backtick."""
    assert (of_query, of_analytics) == (query_identifier(name), analytics_identifier(name))


@rows(
    ("read", "statement", "expected"),
    [
        (query_tokens, "`a``b`", [("identifier", "a`b")]),
        (query_tokens, r"`a\u0060\`\n`", [("identifier", "a``\n")]),
        (query_tokens, r"`a\` ON b` -- c", [("identifier", "a` ON b")]),
        (query_tokens, r"`a\x`", None),
        (query_tokens, "`a", None),
        (analytics_tokens, "`a``b`", [("identifier", "a`b")]),
        (analytics_tokens, r"`a\u0060 b", [("identifier", "a"), ("word", "b")]),
    ],
)
def test_the_grammars(read: Callable[[str], list[Token]], statement: str, expected: list[Token] | None) -> None:
    """Each test lexer reads doubled backticks and escapes, and refuses the text that its service refuses."""
    if expected is None:
        with pytest.raises(SyntaxFault):
            read(statement)
    else:
        assert expected == read(statement)
