"""Decisions on failed requests, in three traditions. Standard library and the core's errors only.

Three traditions stand side by side and do not know each other: ``couchbase``, ``cassandra`` and ``smithy``. ``calls`` retries
any function under a strategy of Smithy's shape. Here is what all of them use. ``triclinium_core.explain`` stands above and
runs these very objects.
"""
