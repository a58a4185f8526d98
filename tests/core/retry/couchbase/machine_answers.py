"""Short names of retry reasons, states and statuses that the tests of the retry machine share."""

from __future__ import annotations

from triclinium_core.retry import couchbase

R, S = couchbase.RetryReason, couchbase.RetryState
LOCKED, TEMPORARY, NOT_MY_VBUCKET, OUTDATED, UNKNOWN = 0x09, 0x86, 0x07, 0x88, 0x7FF0
