"""Reauthentication of a connection that is in use: SASL, then SELECT_BUCKET.

When a connection reauthenticates, a server up to 7.2 deselects the bucket. A later server does so if the new user may
not open the bucket. No server reports this, so the client selects the bucket again.

Source: kv_engine ``docs/BinaryProtocol.md``; decisions C6, C7.
"""

from __future__ import annotations

from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure
from triclinium_core.runtime.kv.connection.connection_events import BucketSelected, News, SaslAnswered
from triclinium_core.runtime.kv.connection.sasl import SaslExchange, SaslMessage

RequestParts = tuple[Opcode, bytes, bytes]
"""Parts of a request: opcode, key and value."""


class Reauthentication:
    """Reauthentication of one connection. Feed every response to ``receive``.

    The reauthentication ends when ``start`` or ``receive`` returns no further request. It failed if ``failure`` is set.

    Args:
        exchange: SASL exchange with the new credentials.
        bucket: bucket to select after SASL; None to select none.
    """

    def __init__(self, exchange: SaslExchange, bucket: str | None) -> None:
        self.exchange: SaslExchange = exchange
        self.next_exchange: SaslExchange | None = None
        """Exchange with an even newer authenticator, or None. It starts if this exchange or its SELECT_BUCKET fails."""
        self.failure: BootstrapFailure | None = None
        self._bucket = bucket

    def start(self) -> RequestParts | None:
        """Return the first request, or set ``failure`` and return None."""
        return self._message_parts(self.exchange.start())

    def receive(self, frame: Frame, news: list[News]) -> RequestParts | None:
        """Process a response and add its events to ``news``. Return the next request; None at the end or a failure."""
        if frame.opcode == Opcode.SELECT_BUCKET:
            return self._on_bucket(self._bucket or "", frame.status, news)
        message = self.exchange.receive(frame)
        if self.exchange.refusal is not None and self.next_exchange is not None:
            return self._begin(self.next_exchange)
        if self.exchange.status is not None:
            news.append(SaslAnswered(self.exchange.status))
        if not self.exchange.is_done:
            return self._message_parts(message)
        return None if self._bucket is None else (Opcode.SELECT_BUCKET, self._bucket.encode(), b"")

    def _on_bucket(self, bucket: str, status: int, news: list[News]) -> RequestParts | None:
        failure = BootstrapFailure.of_bucket(bucket, self.exchange.authenticator, status)
        if failure is not None and self.next_exchange is not None:
            return self._begin(self.next_exchange)
        news.append(BucketSelected(bucket, status))
        self.failure = failure
        return None

    def _begin(self, exchange: SaslExchange) -> RequestParts | None:
        self.exchange, self.next_exchange = exchange, None
        return self.start()

    def _message_parts(self, message: SaslMessage | None) -> RequestParts | None:
        refusal = self.exchange.refusal
        if refusal is not None:
            self.failure = BootstrapFailure.of_sasl(refusal)
            return None
        assert message is not None
        return message.opcode, message.mechanism.encode(), message.payload
