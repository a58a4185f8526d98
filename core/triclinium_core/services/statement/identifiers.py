r"""Names as identifiers of SQL++ statements, between backticks.

In both services a backslash inside of backticks begins an escape, so it is doubled. A backtick needs another form in each:

- The query service reads ``\u0060``. Its older versions refuse a doubled backtick.
- The analytics service decodes ``\u0060`` before its lexer runs, where the backtick would end the identifier. There a
  backtick is doubled.

Source: couchbase/query ``parser/n1ql/n1ql.nex`` and ``util.go``; AsterixDB ``SQLPP.jj``, token ``QUOTED_STRING``.
"""

from __future__ import annotations


def query_identifier(name: str) -> str:
    """Return a name as an identifier of the query service."""
    escaped = name.replace("\\", "\\\\").replace("`", "\\u0060")
    return f"`{escaped}`"


def analytics_identifier(name: str) -> str:
    """Return a name as an identifier of the analytics service."""
    escaped = name.replace("\\", "\\\\").replace("`", "``")
    return f"`{escaped}`"
