"""Laws for a driver of any machine: streams, bytes, time, waiting tasks, and strategies."""
