"""Units of work, in which the client counts its work on received bytes, because the core has no clock.

A unit takes CPython 3.11 about one microsecond on a slow machine. ``python -m tests.bench --only bounds`` calibrates
the numbers: each of its measurements feeds events with only one kind of work.
"""

from __future__ import annotations

WORK_BEFORE_TIME_MAX = 25_000
"""Maximum work on received bytes between the time at which ``wakeup`` is due and ``TimePassed``. It is half of the 50
milliseconds for which the client may block the event loop, because the machine completes the event that exceeds it."""

WORK_OF_A_PASS_MAX = 10_000
"""Maximum work on the received bytes of all streams before a driver lets its other tasks run. A busy client that is not
flooded with data reaches it about once in a hundred ``BytesReceived``. Reaching it costs one more pass of the event
loop."""

PIECE_SIZE_BYTES_MAX = 64 * 1024
"""Maximum size of one ``BytesReceived``. It bounds the work of one event."""

PIECE_WORK = 100
"""Units for one ``BytesReceived`` of any size: the driver reads the bytes, and decrypts a TLS record."""

FRAME_WORK = 6
"""Units for one key-value frame."""

CHUNK_WORK = 2
"""Units for one chunk of an HTTP body."""

HTTP_BYTES_PER_UNIT = 64
"""Number of bytes per unit in the data from an HTTP service. The most expensive bytes are those of chunk extensions,
which a regular expression skips."""

STEPPED_BYTES_PER_UNIT = 16
"""Number of bytes per unit that regular expressions skip in a streamed document: brackets that close soon, short
strings and escapes."""

STEP_WORK = 2
"""Units for one bracket or string of a streamed document that the client skips in a separate step."""

MEMBER_WORK = 8
"""Units for one member of the JSON document that contains the rows."""

ROW_WORK = 1
"""Units for one row. The machine cuts the row out of the document; the caller decodes it before the next pass of the
event loop."""

BYTES_PER_UNIT = 512
"""Number of received, copied or decompressed bytes per unit."""

PARSED_BYTES_PER_UNIT = 64
"""Number of bytes per unit in rows, and in complete JSON responses, which the client parses in one event. A separate
limit bounds the number of their parts."""

CONFIG_BYTES_PER_UNIT = 8
"""Number of bytes per unit in a cluster config: the client parses it, compares it and changes its connections."""

LISTED_ROW_WORK = 20
"""Units for one row of a list that the management API reads, or for one role or group in such a row."""

LISTED_BYTES_PER_UNIT = 1
"""Number of bytes per unit in a row of a list that the management API reads. The client reads the members of the row
one by one, and each member takes 1 to 2 microseconds."""

READ_AT_ONCE_MAX = 25_000
"""Maximum work on the list of one response in one event. The machine reads the rest of the list in later events, for
which ``wakeup`` is due immediately."""
