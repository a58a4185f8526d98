"""Loss causes of Python's exceptions."""

from __future__ import annotations

from collections.abc import Mapping

from triclinium_core.contract.neutral.events import LossCause

CAUSES: Mapping[str, LossCause] = {
    "gaierror": LossCause.NAME_NOT_RESOLVED,
    "SSLError": LossCause.TLS,
    "ConnectionRefusedError": LossCause.REFUSED,
    "ConnectionError": LossCause.RESET,
    "OSError": LossCause.UNREACHABLE,
    # A host name with an empty or a long label raises UnicodeError before a look-up.
    "ValueError": LossCause.NAME_NOT_RESOLVED,
}
"""Loss cause by the name of an exception class. This package does not import the modules of some of these classes."""


def loss_of(error: OSError | ValueError) -> tuple[LossCause, str]:
    """Return the cause of an exception that a connect, a read or a write has raised, and its text for the user.

    The most specific class of the exception that has a cause applies: a refused connection is an ``OSError``, too.
    """
    cause = next(CAUSES[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in CAUSES)
    return cause, getattr(error, "strerror", None) or str(error) or type(error).__name__
