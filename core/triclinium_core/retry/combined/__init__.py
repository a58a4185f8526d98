"""Adapters that let Couchbase requests use token strategies, and function calls use Couchbase strategies.

A token strategy is a strategy with Smithy's interface. ``strategies`` has the strategies that a cluster, a block and a
call accept. ``reason_infos`` describes each retry reason to a token strategy, and ``permits`` has the permit of one
request. ``call_strategies`` adapts Couchbase strategies to function calls.

The package uses ``retry.couchbase``, ``retry.smithy`` and ``retry.calls``. None of these uses the package.
"""
