"""Units of work, which count the client's work on received bytes without measuring time.

A unit is about one microsecond of CPython 3.11 on a slow machine. ``python -m tests.bench --only bounds`` calibrates
the numbers: it measures events that consist of one kind.
"""

from __future__ import annotations

WORK_BEFORE_TIME_MAX = 25_000
"""Maximum work on received bytes after ``wakeup`` is due and before ``TimePassed``. It is half of 50 milliseconds,
because the event that exceeds it is handled completely."""

WORK_OF_A_PASS_MAX = 10_000
"""Maximum work on received bytes, of all streams together, before a driver lets its other tasks run. A busy client
without a flood of data reaches it once in about a hundred pieces, which costs one more pass of its loop."""

PIECE_SIZE_BYTES_MAX = 64 * 1024
"""Maximum size of one ``BytesReceived``. It bounds the work of one event."""

PIECE_WORK = 100
"""Units for one ``BytesReceived`` of any size: the read, and decryption if the piece is one TLS record."""

FRAME_WORK = 6
"""Units for one key-value frame."""

CHUNK_WORK = 2
"""Units for one chunk of a body."""

HTTP_BYTES_PER_UNIT = 64
"""Number of bytes for one unit if an HTTP service sends them. The most expensive ones are chunk extensions, which
patterns skip."""

STEPPED_BYTES_PER_UNIT = 16
"""Number of bytes for one unit if patterns skip them in a streamed document: brackets that close soon, short strings
and escapes."""

STEP_WORK = 2
"""Units for one bracket or string of a streamed document that is skipped alone."""

MEMBER_WORK = 8
"""Units for one member of the document around the rows."""

ROW_WORK = 1
"""Units for one row. The machine cuts it out, and its reader decodes it before the next pass of the event loop."""

BYTES_PER_UNIT = 512
"""Number of bytes for one unit if they are received, copied or inflated."""

PARSED_BYTES_PER_UNIT = 64
"""Number of bytes for one unit in rows, and in the JSON of complete responses, which are parsed in one event. The
number of their parts is limited separately."""

CONFIG_BYTES_PER_UNIT = 8
"""Number of bytes for one unit in a cluster config: it is parsed and compared, and connections change with it."""

LISTED_ROW_WORK = 20
"""Units for one row of a list that a manager reads, or for one role or group of a row."""

LISTED_BYTES_PER_UNIT = 1
"""Number of bytes for one unit in such a row: its members are read one by one, at 1 to 2 microseconds each."""

READ_AT_ONCE_MAX = 25_000
"""Maximum work on the list of one response in one event. The rest is read in later events, for which ``wakeup`` is due
immediately."""
