"""Couchbase's tradition: each failure has a reason, and the strategy of the request decides. Standard library only.

``machine`` drives one request through its ``states``, from ``events`` to ``actions``. ``orchestrator`` asks the ``strategy``,
and ``failures`` makes the exceptions. ``circuit_breaker`` and ``terminal_states`` watch nodes and connections. What a
response means stands in ``tables``.

Source: SDK-RFC 0049.
"""
