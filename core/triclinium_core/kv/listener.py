"""What the owner of the connections wants to know of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from triclinium_core.kv.node.in_flight import InFlightRequest
from triclinium_core.kv.node.news import Answered
from triclinium_core.kv.node.node_machine import NodeMachine
from triclinium_core.retry.couchbase.events import HandedOver


@dataclass(frozen=True, slots=True)
class Loss:
    """A connection that is gone, and who waited for it."""

    parked: Sequence[int]
    detail: str


LostRequest = tuple[InFlightRequest, HandedOver]
"""A request without an answer, and how much of it has left."""


class Listener(Protocol):
    """Hears what happens on any connection, and tells what is known."""

    def config_revision(self, bucket: str | None) -> tuple[int, int] | None:
        """Return epoch and revision of a bucket's newest config that nobody needs to tell again; None for none."""

    def knows_bucket(self, bucket: str | None) -> bool:
        """Tell whether a config of a bucket has ever come."""

    def on_ready(self, node: NodeMachine, now: float) -> None:
        """The connection can be used."""

    def on_resumed(self, node: NodeMachine, now: float) -> None:
        """The connection, which was in use before, can be used again."""

    def on_room(self, node: NodeMachine, now: float) -> None:
        """The connection, for which operations wait, takes some of them."""

    def on_answered(self, node: NodeMachine, answered: Answered, now: float) -> None:
        """A request was answered."""

    def on_stray(self) -> None:
        """A response came that answers no request."""

    def on_config_announced(self, node: NodeMachine, now: float) -> None:
        """The node says that it has another cluster config."""

    def on_requests_lost(self, requests: Sequence[LostRequest], detail: str, now: float) -> None:
        """Requests that were sent, or were to be, will not be answered any more."""

    def on_lost(self, node: NodeMachine, lost: Loss, now: float) -> None:
        """The connection is gone, or its node has left the map, so that nothing more is sent on it."""
