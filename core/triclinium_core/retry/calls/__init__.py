"""Retries of any function, under any strategy of Smithy's shape. The strategy decides; this room asks it, and keeps the rest.

``machine`` drives one call from its first failure to its end, on the ``terms`` that its caller chose. ``retryable`` is what
the caller says of errors and results, and ``http_rules`` what HTTP says of requests. ``history`` is what the last error
tells of the attempts, and ``reports`` what those hear who watch.

It uses ``retry.smithy``, which knows nothing of it.
"""
