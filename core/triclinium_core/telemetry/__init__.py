"""What is told of operations while they run and once they are over: spans, durations, and what was slow (SDK-RFC 0067)."""
