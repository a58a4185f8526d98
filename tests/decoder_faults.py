"""Handling of decoder faults in tests: they are raised, unless a test checks how the client contains them."""

from __future__ import annotations

from typing import NoReturn

from triclinium_core import decoder_faults

CONTAIN = decoder_faults.unexpected
"""Guard that programs use."""


def reraise(decoder: decoder_faults.Decoder, error: Exception) -> NoReturn:
    """Raise the exception of a decoder, instead of containing it as the guard does."""
    raise error
