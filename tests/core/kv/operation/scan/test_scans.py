"""Scan types, whose constructors check the arguments."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.rows import rows
from triclinium_core import errors
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
    ("make", "parameter"),
    [
        (lambda: ScanTerm(""), "term"),
        (lambda: ScanTerm(b"a"), "term"),  # type: ignore[arg-type]
        (lambda: ScanTerm("\ud800"), "term"),
        (lambda: ScanTerm("x" * 251), "term"),
        (lambda: ScanTerm("a", exclusive=1), "exclusive"),  # type: ignore[arg-type]
        (lambda: RangeScan(5), "from_"),  # type: ignore[arg-type]
        (lambda: RangeScan(""), "from_"),
        (lambda: RangeScan("a", b"b"), "to"),  # type: ignore[arg-type]
        (lambda: RangeScan("a", "é" * 126), "to"),
        (lambda: PrefixScan(""), "prefix"),
        (lambda: PrefixScan(None), "prefix"),  # type: ignore[arg-type]
        (lambda: PrefixScan("x" * 251), "prefix"),
        (lambda: SamplingScan(0), "limit"),
        (lambda: SamplingScan(1.0), "limit"),  # type: ignore[arg-type]
        (lambda: SamplingScan(True), "limit"),
        (lambda: SamplingScan(2**64), "limit"),
        (lambda: SamplingScan(1, -1), "seed"),
        (lambda: SamplingScan(1, 2**32), "seed"),
        (lambda: SamplingScan(1, "7"), "seed"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments(make: Callable[[], object], parameter: str) -> None:
    """An invalid argument raises an error that names the parameter."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make()

    assert parameter == caught.value.parameter
    assert parameter in str(caught.value)


def test_limits() -> None:
    """The constructors accept the smallest and the largest value of each argument."""
    assert [1, 2**64 - 1] == [SamplingScan(limit, 0).limit for limit in (1, 2**64 - 1)]
    assert 2**32 - 1 == SamplingScan(1, 2**32 - 1).seed
    assert "x" * 250 == ScanTerm("x" * 250).term
