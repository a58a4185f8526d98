"""Planted bugs: each file in ``snippets`` changes the sources in one way, and the tests must notice.

A file has a description of the bug, the fault (of ``triclinium_core.testing.fakes.faults``) that exposes it or ``none``,
the unit tests that should find it without the properties, and the changed lines.
"""
