"""Planted bugs: each patch in ``patches`` makes the sources wrong in one way, and the tests have to notice.

A patch begins with a header: what it plants, the fault (of ``triclinium_core.testing.fakes.faults``) that shows it, and the unit
tests that should find it without the properties.
"""
