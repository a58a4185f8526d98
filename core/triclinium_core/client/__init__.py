"""Client as one pure machine: events in, ordered actions out, and the time of its next wakeup."""
