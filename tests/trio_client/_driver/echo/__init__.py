"""A toy protocol, to run the neutral half of the driver without Couchbase: lines that come back, and a deadline for each."""
