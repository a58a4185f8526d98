"""Smithy's tradition: a strategy hands out tokens, and a shared quota says when to stop. Standard library only.

``protocols`` has the shapes that strategies, tokens and errors have, ours and other people's; ``classification`` reads
errors. The strategies are ``simple``, ``standard`` and ``adaptive``, and ``resolver`` finds one by options; they are made
of ``base``, ``tokens``, ``quota``, ``backoff``, ``numbers`` and ``rate_limiter``. ``asynchronous`` gives them the
other shape.

What has any function retried under a strategy stands next door, in ``retry.calls``.

Source: the Smithy Python retry design, and the numbers of its shipped library and of the AWS SDKs.
"""
