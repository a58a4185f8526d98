"""Encoding of the version of a cluster config in requests and in notifications that a node pushes.

Source: kv_engine ``docs/BinaryProtocol.md``, 0xb5 and server request 0x01.
"""

from __future__ import annotations

from struct import Struct

CONFIG_VERSION = Struct(">qq")
"""Layout of epoch and revision. Both are signed, because an unknown epoch is negative."""

COUNTER_MAX = 2**63 - 1
"""Highest epoch, revision and uid. Parsers refuse configs and manifests with a higher number."""


def encode_version(version: tuple[int, int] | None) -> bytes:
    """Return the extras that encode a version, or no bytes for None."""
    return CONFIG_VERSION.pack(*version) if version is not None else b""
