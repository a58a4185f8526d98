"""Addresses in events."""

from __future__ import annotations


def address_of(name: object) -> str:
    """Return a socket's name as ``host:port``; empty if it is not a TCP address."""
    match name:
        case (str() as host, int() as port, *_):
            return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        case _:
            return ""
