"""Rules as data: reasons, statuses, responses, error maps and idempotency, each row with its clause."""
