"""Client nonces of the SCRAM exchanges on one stream.

Source: RFC 5802 §5.1 (attribute ``r``) and §9: a repeated nonce lets a node replay an exchange.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode

from triclinium_core.runtime.kv.connection.scram import ScramError

_NONCE_SIZE = 24
"""Size of a nonce in bytes. It exceeds the 18 random bytes of an event. As a multiple of three, it needs no padding in
base64."""


class ExchangeNonces:
    """Nonces of one stream. No two nonces of a client are equal.

    The driver provides entropy for each stream. It also provides entropy once for each change of credentials, and all
    streams share that entropy. A stream may have several exchanges: with a second mechanism after the first, and with
    new credentials. Therefore each nonce is derived from the entropy, the stream, and the number of the exchange on the
    stream.

    Args:
        stream: number of the stream, unique in the client.
    """

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._exchanges = 0

    def next(self, entropy: str) -> str:
        """Return the nonce of the next exchange: printable ASCII without a comma.

        Args:
            entropy: the nonce in an event of the driver.

        Raises:
            ScramError: the entropy is empty.
        """
        if not entropy:
            raise ScramError("the event's nonce is empty; pass a random nonce to StreamOpened and AuthenticatorChanged")
        self._exchanges += 1
        place = f"{self._stream}/{self._exchanges}"
        # HMAC with the entropy as its key: a node that has received one nonce cannot compute another.
        return urlsafe_b64encode(hmac.digest(entropy.encode(), place.encode(), "sha256")[:_NONCE_SIZE]).decode("ascii")
