"""The part of the contract that any protocol uses: streams, bytes, time, tokens, strategies and reports."""

from triclinium_core.contract.neutral.actions import (
    AcquirePermit,
    AwaitedPermit,
    AwaitedStrategy,
    CloseStream,
    ConsultStrategy,
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
from triclinium_core.contract.neutral.events import (
    BytesReceived,
    LossCause,
    StrategyDecided,
    StreamId,
    StreamLost,
    StreamOpened,
    TimePassed,
    Token,
)
from triclinium_core.contract.neutral.machine import Machine
from triclinium_core.contract.neutral.timers import TimerId, Timers

__all__ = [
    "AcquirePermit",
    "AwaitedPermit",
    "AwaitedStrategy",
    "BytesReceived",
    "CloseStream",
    "ConsultStrategy",
    "LossCause",
    "Machine",
    "OpenStream",
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
]
