"""State machines that run operations over key-value and requests over HTTP: life cycle, dispatch, connections."""
