"""Planted bugs: each file in ``snippets`` makes the sources wrong in one way, and the tests have to notice.

A file says what it plants, the fault (of ``triclinium_core.testing.fakes.faults``) that shows it, the unit tests that
should find it without the properties, and the lines that change.
"""
