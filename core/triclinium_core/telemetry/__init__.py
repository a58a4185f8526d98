"""Telemetry of operations: spans, durations, and reports of slow operations and orphans (SDK-RFC 0067)."""
