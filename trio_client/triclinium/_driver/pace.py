"""Limit of the readers' work on received bytes in one pass of trio's loop, ``WORK_OF_A_PASS_MAX``.

Trio runs all runnable tasks in one pass. If the readers of many streams had 64 KiB each, timers and callers would wait
for all of them. Once a pass has reached the limit, a reader that has bytes keeps them for the next pass.
"""

from __future__ import annotations

import trio

from triclinium_core.contract.neutral import StreamId
from triclinium_core.work import WORK_OF_A_PASS_MAX


class Pace:
    """Pace of the readers of one driver."""

    def __init__(self) -> None:
        self.is_over: bool = False
        """Whether this pass has reached the limit."""
        self.limit: int = WORK_OF_A_PASS_MAX
        """Total work of the machine at which this pass, or the next one if ``is_over``, reaches the limit."""
        self.held: set[StreamId] = set()
        """Streams with bytes that were read and are not fed yet."""
        self._pass = 0

    def note(self, work: int) -> None:
        """Record that the work of the machine has reached ``limit``."""
        self.is_over, self.limit = True, work + WORK_OF_A_PASS_MAX

    @trio.lowlevel.enable_ki_protection
    async def next_turn(self, stream: StreamId) -> None:
        """Wait for a pass that can take the bytes of ``stream``. Received bytes are fed even after a cancellation."""
        self.held.add(stream)
        try:
            while self.is_over:
                number = self._pass
                await trio.lowlevel.cancel_shielded_checkpoint()
                if number == self._pass:
                    # This reader is the first to run in the new pass, so it clears the flag.
                    self._pass += 1
                    self.is_over = False
        finally:
            self.held.discard(stream)
