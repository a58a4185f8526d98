"""Explanations of retry decisions in all three traditions, from the objects that clients run.

``couchbase``, ``cassandra`` and ``smithy`` explain one case in words and as data. ``vectors`` answers many questions as data.
Nothing here has a rule of its own.
"""
