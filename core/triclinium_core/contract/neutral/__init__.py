"""Events and actions for any protocol, with the half of a driver that performs no I/O."""

from triclinium_core.contract.neutral.actions import (
    AcquirePermit,
    AwaitedPermit,
    AwaitedStrategy,
    CloseStream,
    ConsultStrategy,
    NeutralAction,
    OpenStream,
    PauseReading,
    RecordSuccess,
    ReportConnection,
    ReportDecoderFault,
    ReportLevel,
    ReportStrategyError,
    ResumeReading,
    SendBytes,
)
from triclinium_core.contract.neutral.driver import ClosedError, DrivenStream, Driver
from triclinium_core.contract.neutral.events import (
    BytesReceived,
    LossCause,
    NeutralEvent,
    StrategyDecided,
    StreamId,
    StreamLost,
    StreamOpened,
    TimePassed,
    Token,
    check_nonce,
)
from triclinium_core.contract.neutral.losses import loss_of
from triclinium_core.contract.neutral.machine import Machine
from triclinium_core.contract.neutral.outbox import Outbox
from triclinium_core.contract.neutral.timers import TimerId, Timers

__all__ = [
    "AcquirePermit",
    "AwaitedPermit",
    "AwaitedStrategy",
    "BytesReceived",
    "CloseStream",
    "ClosedError",
    "ConsultStrategy",
    "DrivenStream",
    "Driver",
    "LossCause",
    "Machine",
    "NeutralAction",
    "NeutralEvent",
    "OpenStream",
    "Outbox",
    "PauseReading",
    "RecordSuccess",
    "ReportConnection",
    "ReportDecoderFault",
    "ReportLevel",
    "ReportStrategyError",
    "ResumeReading",
    "SendBytes",
    "StrategyDecided",
    "StreamId",
    "StreamLost",
    "StreamOpened",
    "TimePassed",
    "TimerId",
    "Timers",
    "Token",
    "check_nonce",
    "loss_of",
]
