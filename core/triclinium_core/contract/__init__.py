"""The contract between the client machine and its drivers: events, actions, timers and gathered telemetry."""
