"""Units of work: counts of what received bytes make the client do. Nothing here measures time.

A unit is about one microsecond of CPython 3.11 on a slow machine. ``python -m tests.bench --only bounds`` measures
events that are full of each kind, and so calibrates the numbers.
"""

from __future__ import annotations

WORK_BEFORE_TIME_MAX = 25_000
"""Work on received bytes between the moment when ``wakeup`` comes and ``TimePassed``. Half of 50 milliseconds, because the
event that passes the bound is handled to its end."""

WORK_OF_A_PASS_MAX = 10_000
"""Work on received bytes, of all streams together, before a driver lets its other tasks run. A busy client that is not
flooded comes to it once in about a hundred pieces, and spends one more pass of its loop."""

PIECE_SIZE_BYTES_MAX = 64 * 1024
"""Bytes of one ``BytesReceived``. The work of one event has its bound by this one."""

PIECE_WORK = 100
"""One ``BytesReceived`` of any size: the read itself, and decryption where the piece is one record of TLS."""

FRAME_WORK = 6
"""One key-value frame."""

CHUNK_WORK = 1
"""One chunk of a body."""

STEP_WORK = 2
"""One bracket or string that is stepped over alone in a streamed document."""

MEMBER_WORK = 8
"""One member of the document around the rows."""

ROW_WORK = 1
"""One row: it is cut out here, and decoded by its reader before the next pass of the event loop."""

BYTES_PER_UNIT = 512
"""Bytes that are received, copied or inflated."""

PARSED_BYTES_PER_UNIT = 64
"""Bytes of JSON of whole answers, which are parsed in one event. Their parts are bounded separately."""

CONFIG_BYTES_PER_UNIT = 8
"""Bytes of a cluster config: it is parsed, compared, and connections follow it."""
