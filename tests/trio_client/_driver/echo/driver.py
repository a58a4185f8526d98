"""Echo half of a driver: one method for users, and the handlers of two actions."""

from __future__ import annotations

from tests.trio_client._driver.echo.machine import (
    EchoAbandoned,
    EchoAction,
    Echoed,
    EchoEvent,
    EchoFailed,
    EchoSubmitted,
)
from triclinium._driver.machine_driver import MachineDriver, NeutralEvent
from triclinium._driver.waiters import Waiter
from triclinium.abc import Connector
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract import neutral


class EchoLog:
    """Log of one client, as a list of lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def connection(self, report: neutral.ReportConnection) -> None:
        """Record an event of the connection."""
        self.lines.append(f"{report.node} {report.text}")

    def decoder_fault(self, report: neutral.ReportDecoderFault) -> None:
        """Record a defect of a decoder."""
        self.lines.append(str(report.fault))

    def strategy_error(self, report: neutral.ReportStrategyError) -> None:
        """Record the exception of a strategy."""
        self.lines.append(repr(report.error))


class EchoDriver(MachineDriver[EchoEvent, EchoAction | neutral.NeutralAction, str, str]):
    """Running echo client."""

    def __init__(
        self,
        machine: neutral.Machine[EchoEvent | NeutralEvent, EchoAction | neutral.NeutralAction],
        connector: Connector,
    ) -> None:
        self.log = EchoLog()
        super().__init__(machine, connector=connector, log=self.log)
        self._handlers |= {Echoed: self._echoed, EchoFailed: self._failed}

    async def echo(self, text: str, *, seconds: float = 10.0) -> str:
        """Return the text when the server has sent it back.

        Raises:
            EchoError: the deadline has passed or the connection was lost.
            ArgumentError: the text is not a single line, or is too long.
            trio.ClosedResourceError: the client is closed.

        Cancellation: abandons the text, which may have been sent.
        """
        return await self._perform(text, lambda token: EchoSubmitted(token, text, seconds))

    def _abandoned(self, waiter: Waiter[str, str]) -> EchoAbandoned:
        return EchoAbandoned(waiter.token)

    def _refused(self, event: EchoEvent | NeutralEvent, error: ArgumentError) -> None:
        if not isinstance(event, EchoSubmitted):
            raise error
        self._settle(event.token, None, error)

    def _echoed(self, action: Echoed) -> None:
        self._settle(action.token, action.text, None)

    def _failed(self, action: EchoFailed) -> None:
        self._settle(action.token, None, action.error)
