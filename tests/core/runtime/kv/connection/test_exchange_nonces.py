"""Nonces of SCRAM exchanges, which differ from each other and which a node cannot predict."""

from __future__ import annotations

import pytest

from triclinium_core.runtime.kv.connection.exchange_nonces import ExchangeNonces
from triclinium_core.runtime.kv.connection.scram import ScramClient, ScramError


def test_no_nonce_is_used_twice() -> None:
    """The nonces differ if the entropy, the stream or the exchange differs, and SCRAM accepts each of them."""
    nonces = []
    for stream in (1, 11, 111):
        of_stream = ExchangeNonces(stream)
        nonces += [of_stream.next(entropy) for entropy in ("a", "a1", "a/1", "a") for _ in range(3)]

    assert 36 == len(set(nonces))
    assert all(ScramClient("SCRAM-SHA1", "ada", "", nonce=nonce).first().endswith(nonce.encode()) for nonce in nonces)


def test_runs_repeat() -> None:
    """The same entropy on the same stream yields the same nonces."""
    assert ExchangeNonces(7).next("entropy") == ExchangeNonces(7).next("entropy")


def test_entropy_is_not_sent() -> None:
    """A nonce does not contain the entropy, from which a node could compute the next nonces."""
    entropy = "eighteen-random-bytes-12"

    assert entropy not in ExchangeNonces(1).next(entropy)


def test_no_entropy() -> None:
    """Empty entropy is rejected, because a node could predict the nonces."""
    with pytest.raises(ScramError):
        ExchangeNonces(1).next("")
