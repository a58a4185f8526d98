"""Explanations of retry decisions for Couchbase, Cassandra and Smithy, made by the objects that clients run.

``couchbase``, ``cassandra`` and ``smithy`` explain one case in words and as data. ``tools.vectors`` answers many
questions as data. These packages contain no retry rules.
"""
