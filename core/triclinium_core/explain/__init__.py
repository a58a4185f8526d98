"""Explanations of the retry decisions of Couchbase, Cassandra and Smithy clients.

``couchbase``, ``cassandra`` and ``smithy`` explain one case in words and as data. ``tools.vectors`` runs many cases and
returns only data. These packages contain no retry rules.
"""
