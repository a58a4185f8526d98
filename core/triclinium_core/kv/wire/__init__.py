"""The memcached binary protocol as Couchbase speaks it: bytes to frames and back, and nothing else."""
