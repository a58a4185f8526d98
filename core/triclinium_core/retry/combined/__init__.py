"""Strategies across traditions: token strategies for requests, Couchbase strategies for calls.

``strategies`` has the strategies that a cluster, a block and a call accept. ``reason_infos`` describes each retry
reason to a token strategy, and ``permits`` has the permit of one request. ``call_strategies`` adapts Couchbase
strategies to calls.

The package uses ``retry.couchbase``, ``retry.smithy`` and ``retry.calls``; none of them depends on it.
"""
