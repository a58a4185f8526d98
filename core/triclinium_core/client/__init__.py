"""State machine of a client: it takes events, and returns ordered actions and the time of its next wakeup."""
