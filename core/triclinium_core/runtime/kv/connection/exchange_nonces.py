"""Client nonces of the SCRAM exchanges on one stream.

Source: RFC 5802 §5.1 (attribute ``r``) and §9: a repeated nonce lets a node replay an exchange.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode

from triclinium_core.runtime.kv.connection.scram import ScramError

_NONCE_SIZE = 24
"""Bytes of a nonce: more than the 18 random bytes of an event, and a multiple of three to avoid padding in base64."""


class ExchangeNonces:
    """Nonces of one stream, each different from all others of the client.

    A driver provides entropy once for each stream, and once for new credentials, which all streams share. A stream may
    have several exchanges: with a second mechanism after the first, and with new credentials. Therefore each nonce is
    derived from the entropy, the stream, and the number of the exchange on the stream.

    Args:
        stream: number of the stream, unique in the client.
    """

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._exchanges = 0

    def next(self, entropy: str) -> str:
        """Return the nonce of the next exchange: printable ASCII without a comma.

        Args:
            entropy: the nonce of an event.

        Raises:
            ScramError: the entropy is empty.
        """
        if not entropy:
            raise ScramError("the event's nonce is empty; pass random bytes to StreamOpened and AuthenticatorChanged")
        self._exchanges += 1
        place = f"{self._stream}/{self._exchanges}"
        # Without the entropy, a node that knows one nonce cannot compute another.
        return urlsafe_b64encode(hmac.digest(entropy.encode(), place.encode(), "sha256")[:_NONCE_SIZE]).decode("ascii")
