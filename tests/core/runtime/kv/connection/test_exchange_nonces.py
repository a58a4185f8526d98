"""Nonces of SCRAM exchanges: they differ from each other, and the same entropy yields the same nonces."""

from __future__ import annotations

from triclinium_core.runtime.kv.connection.exchange_nonces import ExchangeNonces
from triclinium_core.runtime.kv.connection.scram import ScramClient


def test_no_nonce_is_used_twice() -> None:
    """The nonces differ if the entropy, the stream or the exchange differs, and SCRAM accepts each of them."""
    nonces = []
    for stream in (1, 11, 111):
        of_stream = ExchangeNonces(stream)
        nonces += [of_stream.next(entropy) for entropy in ("a", "a1", "a/1", "a") for _ in range(3)]

    assert 36 == len(set(nonces))
    assert all(ScramClient("SCRAM-SHA1", "ada", "", nonce=nonce).first().endswith(nonce.encode()) for nonce in nonces)


def test_runs_repeat() -> None:
    """The same entropy on the same stream yields the same nonces: the HMAC of the exchange with the entropy as key."""
    # Source: printf '7/1' | openssl dgst -sha256 -hmac entropy -binary | head -c 24 | base64 | tr '+/' '-_'
    known = "0c9WJFQpismT328gOLB0TIz1wUFNyNAt"

    assert known == ExchangeNonces(7).next("entropy") == ExchangeNonces(7).next("entropy")
