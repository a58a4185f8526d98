"""Telemetry of operations: spans, durations, and reports of slow operations (SDK-RFC 0067)."""
