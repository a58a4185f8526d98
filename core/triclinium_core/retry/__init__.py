"""Decisions on failed requests, in three traditions. Standard library and the core's errors only.

The three traditions ``couchbase``, ``cassandra`` and ``smithy`` are independent of each other. ``calls`` retries any
function under a strategy with Smithy's interface. The modules of this package itself are shared by all of them.
``triclinium_core.explain`` is a higher layer that runs these objects.
"""
