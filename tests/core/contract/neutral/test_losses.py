"""Loss causes of exceptions."""

from __future__ import annotations

import errno
import os

import pytest

from triclinium_core.contract.neutral import LossCause, loss_of

native = pytest.mark.native


def joined(*numbers: int) -> OSError:
    """Return asyncio's exception for a name if connecting to its addresses failed with these error numbers."""
    return OSError("Multiple exceptions: " + ", ".join(f"[Errno {number}] Connect call failed" for number in numbers))


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ConnectionRefusedError(), LossCause.REFUSED),
        (ConnectionResetError(), LossCause.RESET),
        (BrokenPipeError(), LossCause.RESET),
        (TimeoutError(), LossCause.UNREACHABLE),
        (OSError(errno.ENETUNREACH, "no route"), LossCause.UNREACHABLE),
        (joined(errno.ECONNREFUSED, errno.ECONNREFUSED), LossCause.REFUSED),
        (joined(errno.ENETUNREACH, errno.ECONNREFUSED), LossCause.REFUSED),
        (joined(errno.ENETUNREACH, errno.ETIMEDOUT), LossCause.UNREACHABLE),
        (OSError(f"the log had [Errno {errno.ECONNREFUSED}]"), LossCause.UNREACHABLE),
        (UnicodeError("label empty or too long"), LossCause.NAME_NOT_RESOLVED),
    ],
    ids=repr,
)
def test_the_most_specific_class_decides(error: OSError | ValueError, cause: LossCause) -> None:
    """An exception has the cause of its class or, for several addresses, that of a refusal if there was one."""
    assert cause is loss_of(error)[0]


@native
def test_exceptions_of_sockets_and_tls() -> None:
    """Failures of name lookups and of TLS have their own causes, although they are OSErrors."""
    import socket  # noqa: PLC0415  # WebAssembly lacks parts of both modules
    import ssl  # noqa: PLC0415

    assert LossCause.NAME_NOT_RESOLVED is loss_of(socket.gaierror(socket.EAI_NONAME, "unknown"))[0]
    assert LossCause.TLS is loss_of(ssl.SSLCertVerificationError("expired"))[0]


def test_the_text_is_never_empty() -> None:
    """The text is that of the system, else that of the exception, else the name of its class."""
    refused = os.strerror(errno.ECONNREFUSED)

    assert refused == loss_of(OSError(errno.ECONNREFUSED, refused))[1]
    assert "timed out" == loss_of(TimeoutError("timed out"))[1]
    assert "ConnectionResetError" == loss_of(ConnectionResetError())[1]
