"""How the version of a cluster config travels: in requests for a newer one, and in announcements.

Source: kv_engine ``docs/BinaryProtocol.md``, 0xb5 and server request 0x01.
"""

from __future__ import annotations

from struct import Struct

CONFIG_VERSION = Struct(">qq")
"""Epoch and revision, signed: an epoch that is not known yet is negative."""

COUNTER_MAX = 2**63 - 1
"""Of either; what a config claims beyond that cannot be asked about."""


def encode_version(version: tuple[int, int] | None) -> bytes:
    """Return the extras that tell a version; none where there is none, or where it cannot be told."""
    if version is None or not all(-COUNTER_MAX <= counter <= COUNTER_MAX for counter in version):
        return b""
    return CONFIG_VERSION.pack(*version)
