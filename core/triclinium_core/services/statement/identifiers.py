r"""Names as identifiers of SQL++ statements, between backticks.

In both services a backslash between backticks begins an escape, so it is doubled. The escape of a backtick differs:

- For the query service, ``\u0060`` replaces a backtick. Older versions of the service refuse a doubled backtick.
- For the analytics service, a backtick is doubled. The service decodes ``\u0060`` before its lexer runs, so an escaped
  backtick would end the identifier.

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
