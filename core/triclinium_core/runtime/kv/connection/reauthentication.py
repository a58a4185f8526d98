"""Authentication on a connection that is in use: SASL, and then its bucket.

Servers up to 7.2 take the bucket from a connection that authenticates, later ones where the user may not open it. Neither
says so, so it is selected again.

Source: kv_engine ``docs/BinaryProtocol.md``; decisions C6, C7.
"""

from __future__ import annotations

from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure
from triclinium_core.runtime.kv.connection.connection_events import BucketSelected, News, SaslAnswered
from triclinium_core.runtime.kv.connection.sasl import SaslExchange, SaslMessage

RequestParts = tuple[Opcode, bytes, bytes]
"""What to ask the server: opcode, key and value."""


class Reauthentication:
    """What goes on from other credentials to a connection that can be used. Feed every answer to ``receive``.

    It is over with ``failure``, or when there is nothing more to ask.

    Args:
        exchange: says who the client is now.
        bucket: what is to be selected afterwards; None for nothing.
    """

    def __init__(self, exchange: SaslExchange, bucket: str | None) -> None:
        self.exchange: SaslExchange = exchange
        self.next_exchange: SaslExchange | None = None
        """The one that follows where this one fails, since the authenticator has changed meanwhile."""
        self.failure: BootstrapFailure | None = None
        self._bucket = bucket

    def start(self) -> RequestParts | None:
        """Return the first question. Sets ``failure`` where there is none."""
        return self._say(self.exchange.start())

    def receive(self, frame: Frame, news: list[News]) -> RequestParts | None:
        """Take an answer, tell what it means, and return what to ask next, if anything."""
        if frame.opcode == Opcode.SELECT_BUCKET:
            return self._on_bucket(self._bucket or "", frame.status, news)
        message = self.exchange.receive(frame)
        if self.exchange.refusal is not None and self.next_exchange is not None:
            return self._begin(self.next_exchange)
        if self.exchange.status is not None:
            news.append(SaslAnswered(self.exchange.status))
        if not self.exchange.is_done:
            return self._say(message)
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

    def _say(self, message: SaslMessage | None) -> RequestParts | None:
        refusal = self.exchange.refusal
        if refusal is not None:
            self.failure = BootstrapFailure.of_sasl(refusal)
            return None
        assert message is not None
        return message.opcode, message.mechanism.encode(), message.payload
