"""Named parameters that are given as keywords beside options, where a slip of the pen would pass for a parameter."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

from triclinium_core.errors import InvalidArgumentException


def stands_in(statement: str, name: str) -> bool:
    """Tell whether a statement has a parameter of this name, as ``$name`` or ``@name``; in a text or a comment counts too."""
    return re.search(rf"[$@]{re.escape(name)}(?!\w)", statement) is not None


def check_keywords(statement: object, keywords: Collection[str], options: Collection[str]) -> None:
    """Raise where a keyword can be no parameter of the statement, for it does not stand there.

    A service ignores a parameter that its statement does not have, and so would run without an option that was misspelt.

    Args:
        statement: what is no text is left to the check of the statement.
        options: what the keyword may have been meant for.

    Raises:
        InvalidArgumentException: neither ``$keyword`` nor ``@keyword`` stands in the statement.
    """
    if not isinstance(statement, str):
        return
    for keyword in keywords:
        if not stands_in(statement, keyword):
            meant = get_close_matches(keyword, options, n=1)
            hint = f"did you mean the option {meant[0]}?" if meant else "named_parameters= takes any name"
            raise InvalidArgumentException(
                f"{keyword}= is no option, and ${keyword} does not stand in the statement; {hint}", parameter=keyword
            )
