"""Loss causes for Python exceptions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from triclinium_core.contract.neutral.events import LossCause

CAUSES: Mapping[str, LossCause] = {
    "gaierror": LossCause.NAME_NOT_RESOLVED,
    "SSLError": LossCause.TLS,
    "ConnectionRefusedError": LossCause.REFUSED,
    "ConnectionError": LossCause.RESET,
    "OSError": LossCause.UNREACHABLE,
    # A host name with an empty or overlong label raises UnicodeError, a ValueError, before a lookup.
    "ValueError": LossCause.NAME_NOT_RESOLVED,
}
"""Loss cause by the name of an exception class. The first row that matches applies, so specific classes come first.
This package does not import the modules of some of these classes."""

_ERROR_NUMBER = re.compile(r"\[Errno (\d+)\]")


def loss_of(error: OSError | ValueError) -> tuple[LossCause, str]:
    """Return the cause of an exception that a connect, a read or a write has raised, and its text for the user.

    The most specific class of the exception that has a cause applies: a refused connection is an ``OSError``, too. If
    a name has several addresses, a refused connection takes precedence over an unreachable address.
    """
    kinds = [type(error)]
    if kinds == [OSError] and str(error).startswith("Multiple exceptions: "):
        # asyncio joins the different errors of several addresses into one message. OSError(number, ...) creates an
        # instance of the subclass for the number.
        kinds += [type(OSError(int(number), "")) for number in _ERROR_NUMBER.findall(str(error))]
    names = {base.__name__ for kind in kinds for base in kind.__mro__}
    cause = next(cause for name, cause in CAUSES.items() if name in names)
    return cause, getattr(error, "strerror", None) or str(error) or type(error).__name__
