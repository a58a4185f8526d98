"""Tables with the rules of the RFCs: retry reasons, statuses, responses, error maps and idempotency."""
