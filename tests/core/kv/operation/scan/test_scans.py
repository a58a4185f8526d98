"""Scan types, whose constructors check the arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.refusals import refused
from tests.rows import rows
from triclinium_core.kv.operation.scan.scans import Bounds, PrefixScan, RangeScan, SamplingScan, ScanTerm


@pytest.mark.parametrize(
    ("scan", "bounds"),
    [
        (RangeScan(), Bounds(b"\x00", b"\xff")),
        (RangeScan("a", "b"), Bounds(b"a", b"b")),
        (RangeScan(ScanTerm("a"), ScanTerm("b")), Bounds(b"a", b"b")),
        (
            RangeScan(ScanTerm("a", exclusive=True), ScanTerm("é", exclusive=True)),
            Bounds(b"a", "é".encode(), excludes_start=True, excludes_end=True),
        ),
        (RangeScan(to="b"), Bounds(b"\x00", b"b")),
        (RangeScan(from_="b"), Bounds(b"b", b"\xff")),
        (PrefixScan("user"), Bounds(b"user", b"user\xff")),
        (PrefixScan("x" * 249), Bounds(b"x" * 249, b"x" * 249 + b"\xff")),
        (PrefixScan("x" * 250), Bounds(b"x" * 250, b"x" * 250)),
    ],
    ids=str,
)
def test_bounds(scan: RangeScan | PrefixScan, bounds: Bounds) -> None:
    """A bound of a scan is inclusive or exclusive bytes; by default the bounds include every UTF-8 key."""
    assert bounds == scan.bounds


@rows(
    ("parameter", "make", "values"),
    [
        ("term", ScanTerm, ("", b"a", "\ud800", "x" * 251)),
        ("exclusive", lambda value: ScanTerm("a", exclusive=value), (1,)),
        ("from_", RangeScan, (5, "")),
        ("to", partial(RangeScan, "a"), (b"b", "é" * 126)),
        ("prefix", PrefixScan, ("", None, "x" * 251)),
        ("limit", SamplingScan, (0, 1.0, True, 2**64)),
        ("seed", partial(SamplingScan, 1), (-1, 2**32, "7")),
    ],
)
def test_wrong_arguments(parameter: str, make: Callable[..., object], values: tuple[object, ...]) -> None:
    """An invalid argument raises an error that names the parameter."""
    for value in values:
        refused(parameter, make, value)


def test_limits() -> None:
    """The constructors accept the limits of ``limit``, the largest seed and the longest term."""
    assert [1, 2**64 - 1] == [SamplingScan(limit, 0).limit for limit in (1, 2**64 - 1)]
    assert 2**32 - 1 == SamplingScan(1, 2**32 - 1).seed
    assert "x" * 250 == ScanTerm("x" * 250).term
