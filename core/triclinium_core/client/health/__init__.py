"""What is asked and told about the cluster itself: pings, readiness, diagnostics, statistics."""
