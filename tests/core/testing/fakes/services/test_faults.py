"""Functions that create faults for HTTP requests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.testing.fakes.services import faults
from triclinium_core.testing.fakes.services.faults import http_status


@rows(
    ("make", "parameter"),
    [
        (lambda: http_status(100), "code"),
        (lambda: http_status(600), "code"),
        (lambda: http_status(200, "text"), "body"),  # type: ignore[arg-type]
        (lambda: http_status(200, content_type=None), "content_type"),  # type: ignore[arg-type]
        (lambda: http_status(200, headers=[]), "headers"),  # type: ignore[arg-type]
        (lambda: http_status(200, headers={"a": "b\r\nc: d"}), "headers"),
        (lambda: http_status(200, headers={"a": 1}), "headers"),  # type: ignore[dict-item]
        (lambda: faults.proxy_page(99), "code"),
        (lambda: faults.redirect("http://a/", 304), "code"),
        (lambda: faults.redirect("http://a/\n"), "headers"),
        (lambda: http_status(200, headers={"content-length": "5"}), "headers"),
        (lambda: http_status(200, headers={"Transfer-Encoding": "gzip"}), "headers"),
        (lambda: http_status(200, headers={"a b": "c"}), "headers"),
        (lambda: http_status(200, content_type="a\r\nb: c"), "content_type"),
        (lambda: faults.proxy_page("\ud800"), "code"),  # type: ignore[arg-type]
        (lambda: faults.raw_answer("text"), "data"),  # type: ignore[arg-type]
        (lambda: faults.hang_up_mid_request(bytes_read=0), "bytes_read"),
        (lambda: faults.cut_body(bytes_sent=-1), "bytes_sent"),
        (lambda: faults.wrong_content_length(announced=-1), "announced"),
        (lambda: faults.wrong_content_length(announced=faults.BYTES_MAX + 1), "announced"),
        (lambda: faults.wrong_chunk_size(announced=0), "announced"),
        (lambda: faults.gzipped(zeros=faults.ZEROS_MAX + 1), "zeros"),
        (lambda: faults.answer_twice(closes=1), "closes"),  # type: ignore[arg-type]
    ],
)
def test_refuses_invalid_arguments(make: Callable[[], object], parameter: str) -> None:
    """A wrong type, a number out of range or an invalid header raises an error that names the parameter."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make()

    assert parameter == caught.value.parameter
