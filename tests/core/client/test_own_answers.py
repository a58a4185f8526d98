"""Table of the handlers of responses to the client's own requests and to ended operations."""

from __future__ import annotations

from typing import get_args

from triclinium_core.client import own_answers
from triclinium_core.runtime.kv.connection.in_flight import Owner, Purpose
from triclinium_core.runtime.kv.live_operation import LiveOperation


def test_each_owner_has_a_handler() -> None:
    """The table has a handler for each owner of a request, except open operations."""
    owners = set(get_args(Owner)) - {LiveOperation, Purpose}

    assert {*owners, *Purpose} == own_answers._ON_OWN_ANSWER.keys()
