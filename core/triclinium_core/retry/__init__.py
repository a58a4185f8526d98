"""The heart: what happens to one failed request. Standard library and the core's errors only.

Tables first (``reasons``, ``kv_status``, ``kv_responses``, ``service_responses``, ``idempotency``), then the pure
machines (``machine``, ``circuit_breaker``, ``terminal_states``), the strategies that decide, and ``explain``, which runs
these very objects for one case and tells the result in words.
"""
