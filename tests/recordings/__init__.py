"""Recordings of the client machine's actions in simulated histories, for comparing two versions of the sources."""
