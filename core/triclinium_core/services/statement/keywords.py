"""Named parameters that are given as keywords beside options, where a typing mistake would pass for a parameter."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

from triclinium_core.errors import InvalidArgumentException


def stands_in(statement: str, name: str) -> bool:
    """Tell whether a statement has a parameter of this name, as ``$name`` or ``@name``, in a string or comment too."""
    return re.search(rf"[$@]{re.escape(name)}(?!\w)", statement) is not None


def check_keywords(statement: object, keywords: Collection[str], options: Collection[str]) -> None:
    """Raise if a keyword cannot be a parameter of the statement, because it does not occur there.

    A service ignores a parameter that its statement does not have, so a misspelt option would have no effect.

    Args:
        statement: anything but a string is left to the check of the statement.
        options: what the keyword may have been meant to be.

    Raises:
        InvalidArgumentException: neither ``$keyword`` nor ``@keyword`` occurs in the statement.
    """
    if not isinstance(statement, str):
        return
    for keyword in keywords:
        if not stands_in(statement, keyword):
            meant = get_close_matches(keyword, options, n=1)
            hint = f"did you mean the option {meant[0]}?" if meant else "named_parameters= takes any name"
            raise InvalidArgumentException(
                f"{keyword}= is not an option, and ${keyword} is not in the statement; {hint}", parameter=keyword
            )
