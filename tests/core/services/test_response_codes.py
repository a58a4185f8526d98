"""Responses for each line of the RFC's retry list, in the complete client machine."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.simulated import get
from tests.core.runtime.services.asking import Asking
from tests.core.services.response_codes import ListedAnswer, listed_answers
from tests.never_retry import NeverRetry
from triclinium_core import errors


@pytest.mark.parametrize("listed", [*listed_answers()], ids=lambda listed: listed.line.clause)
def test_a_line_of_the_list(listed: ListedAnswer) -> None:
    """A request is retried if the strategy agrees or the reason is always retried, and otherwise fails."""
    simulation = Asking()
    simulation.submit(get())
    simulation.run()
    simulation.nodes.script.answer(listed.said, *listed.answers, service=listed.line.service)

    token = simulation.finish(listed.request)
    sent = len(simulation.asked)
    simulation.nodes.script.answer(listed.said, listed.failing, service=listed.line.service)
    refused = simulation.request(listed.request, retry_strategy=NeverRetry())
    simulation.run(1.0)

    assert 1 == len(simulation.rows[token])
    assert [listed.line.reason] * 2 == [retry.reason for retry in simulation.retries[:2]]
    assert 3 == sent
    if listed.line.reason.always_retry:
        assert refused not in simulation.settled_at
        return
    assert 4 == len(simulation.asked)
    assert isinstance(simulation.errors[refused], errors.CouchbaseException)
    assert str(listed.line.reason) == simulation.errors[refused].context.refused_reason
