"""Golden tapes: an event tape of each scenario of ``triclinium demo``, in ``tests/data/tapes``.

A tape has the credentials of the fake node, and no others. The text beside it has the digests of the tape, because the
lines of a tape are too long for a readable diff.
"""
