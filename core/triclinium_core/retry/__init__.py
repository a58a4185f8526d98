"""Retry rules of three projects. They import only the standard library and modules of the core that need nothing else.

``couchbase`` follows the Couchbase SDK RFCs, ``cassandra`` the Cassandra Java driver, and ``smithy`` the Smithy retry
design. These three packages do not import each other. ``calls`` retries any function under a strategy with Smithy's
interface. ``combined`` lets Couchbase requests use Smithy strategies, and function calls use Couchbase strategies. All
of these packages share the modules beside them. ``triclinium_core.explain`` is a higher layer that runs their objects.
"""
