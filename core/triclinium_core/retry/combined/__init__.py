"""Strategies across traditions: token strategies for requests, Couchbase strategies for calls.

``strategies`` says what a cluster, a block and a call take. ``reason_infos`` tells a token strategy what each retry reason
means, and ``permits`` has the permit of one request. ``call_strategies`` has Couchbase strategies decide about calls.

It uses ``retry.couchbase``, ``retry.smithy`` and ``retry.calls``, none of which knows it.
"""
