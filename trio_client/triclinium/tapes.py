"""Tapes, which record what happens in a client. Pass one to ``open_cluster`` as ``tape``."""

from __future__ import annotations

from triclinium._tapes.decision_tape import DecisionTape
from triclinium._tapes.event_tape import EventTape
from triclinium._tapes.tape import Tape

__all__ = ["DecisionTape", "EventTape", "Tape"]
