"""Constants that several tests of the key-value carrier share."""

from __future__ import annotations

from tests.core.runtime.kv.phases import read, write
from tests.rows import rows
from triclinium_core.contract import neutral
from triclinium_core.testing.fakes.error_map import ErrorMapDocument, ErrorMapRow

TWO = neutral.StreamId(2)
each_kind = rows("make", [read, write])


MAP = ErrorMapDocument(
    revision=3,
    rows=(
        ErrorMapRow(0x7F03, "AUTO", "auto-retry", "Again", {"strategy": "constant", "interval": 10, "after": 20}),
        ErrorMapRow(0x7F06, "INPUT", "invalid-input", "Not like this"),
        ErrorMapRow(0x7F08, "CONFIG", "fetch-config", "Look at the map"),
        ErrorMapRow(0x7F09, "GONE", "conn-state-invalidated", "Connect anew"),
        ErrorMapRow(0x7F0A, "SPECIAL", "special-handling", "You know how"),
        ErrorMapRow(0x7F0B, "GONE_NOW", "conn-state-invalidated retry-now", "Connect anew and try again"),
        ErrorMapRow(0x7F0C, "CONFIG_NOW", "fetch-config retry-now", "Look at the map and try again"),
    ),
)
