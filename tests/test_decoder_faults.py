"""Guard around decoders, as tests use it."""

from __future__ import annotations

import pytest

from triclinium_core import decoder_faults


def test_defects_are_raised_by_default() -> None:
    """A test gets the decoder's own exception by default, so that fuzzing finds it."""
    planted = KeyError("planted")

    with pytest.raises(KeyError) as caught:
        decoder_faults.unexpected(decoder_faults.Decoder.ROWS, planted)
    assert planted is caught.value


@pytest.mark.usefixtures("contain_decoder_faults")
def test_defects_are_contained_on_demand() -> None:
    """If a test contains decoder faults, it gets the fault that programs get."""
    fault = decoder_faults.unexpected(decoder_faults.Decoder.ROWS, KeyError("planted"))

    assert isinstance(fault, decoder_faults.DecoderFault)
