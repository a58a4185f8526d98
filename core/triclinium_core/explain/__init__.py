"""Explanations of the retry decisions that the objects of clients make, for Couchbase, Cassandra and Smithy.

``couchbase``, ``cassandra`` and ``smithy`` explain one case in words and as data. ``tools.vectors`` runs many cases and
returns only data. These packages contain no retry rules.
"""
