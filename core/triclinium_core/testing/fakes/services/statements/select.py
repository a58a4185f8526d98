"""SELECT statements that a fake query service supports: constants, or rows of a system keyspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from triclinium_core.testing.fakes.services.statements.sqlpp import MISSING, Expression, Names, NotUnderstood, SqlReader

_ENDS = frozenset({"FROM", "WHERE", "ORDER", "AS", "LIMIT"})


class Column(NamedTuple):
    """One column of the result; without an expression, all fields of ``name``."""

    name: str
    expression: Expression | None


class Ordering(NamedTuple):
    """One term of ORDER BY."""

    expression: Expression
    descends: bool

    def rank(self, scope: Names) -> tuple[int, object]:
        """Return the sort key of a row."""
        return _collation(self.expression(scope))


class Select(NamedTuple):
    """A parsed statement."""

    columns: tuple[Column, ...]
    is_raw: bool
    source: tuple[str, ...] | None
    """Keyspace that the statement reads; None for a statement of constants."""
    alias: str
    where: Expression | None
    orderings: tuple[Ordering, ...]

    def rows(self, documents: Iterable[Mapping[str, object]]) -> list[object]:
        """Return the rows of the result; ``documents`` are the documents of the source."""
        scopes: list[Names] = [{}]
        if self.source is not None:
            scopes = [{**document, self.alias: document} for document in documents]
        if self.where is not None:
            where = self.where
            scopes = [scope for scope in scopes if where(scope) is True]
        for ordering in reversed(self.orderings):
            scopes.sort(key=ordering.rank, reverse=ordering.descends)
        return [row for scope in scopes if (row := self._row(scope)) is not MISSING]

    def _row(self, scope: Names) -> object:
        if self.is_raw:
            (column,) = self.columns
            assert column.expression is not None
            return column.expression(scope)
        row: dict[str, object] = {}
        for name, expression in self.columns:
            if expression is None:
                found = scope.get(name)
                row |= found if isinstance(found, Mapping) else {}
            elif (value := expression(scope)) is not MISSING:
                row[name] = value
        return row


def read_select(reader: SqlReader) -> Select:
    """Return the SELECT at the reader's position; raise NotUnderstood for any other statement."""
    reader.expect("SELECT")
    is_raw = any(reader.take(word) for word in ("RAW", "ELEMENT", "VALUE"))
    columns = [_read_column(reader, 1)]
    while not is_raw and reader.take(","):
        columns.append(_read_column(reader, len(columns) + 1))
    source, alias, where, orderings = None, "", None, []
    if reader.take("FROM"):
        namespace_and_name = (reader.read_name(), *((reader.read_name(),) if reader.take(":") else ()))
        source, alias = namespace_and_name, namespace_and_name[-1]
        if reader.take("AS") or (reader.peek().kind == "word" and reader.peek().keyword not in _ENDS):
            alias = reader.read_name()
        if reader.take("WHERE"):
            where = reader.read_expression()
        if reader.take("ORDER", "BY"):
            orderings.append(_read_ordering(reader))
            while reader.take(","):
                orderings.append(_read_ordering(reader))
    reader.end()
    if is_raw and columns[0].expression is None:
        raise NotUnderstood(columns[0].name)
    return Select(tuple(columns), is_raw, source, alias, where, tuple(orderings))


def _read_column(reader: SqlReader, place: int) -> Column:
    every = reader.take_every()
    if every is not None:
        return Column(every, None)
    expression = reader.read_expression()
    if reader.take("AS") or (reader.peek().kind in ("word", "escaped") and reader.peek().keyword not in _ENDS):
        return Column(reader.read_name(), expression)
    return Column(f"${place}" if reader.last_field is None else reader.last_field, expression)


def _read_ordering(reader: SqlReader) -> Ordering:
    expression = reader.read_expression()
    descends = reader.take("DESC")
    if not descends:
        reader.take("ASC")
    return Ordering(expression, descends)


def _collation(value: object) -> tuple[int, object]:
    """Return a sort key that orders values like SQL++: by type first, with missing values before all others.

    Source: Couchbase Server documentation, "SQL++ Language Reference": Collation.
    """
    match value:
        case bool():
            return 2, value
        case int() | float():
            return 3, value
        case str():
            return 4, value
        case None:
            return 1, 0
        case list() | tuple():
            return 5, [_collation(item) for item in value]
        case Mapping():
            return 6, sorted((name, _collation(field)) for name, field in value.items())
        case _:
            return 0, 0
