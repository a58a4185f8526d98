"""Half of the driver for any protocol: it feeds a machine and executes the actions that every machine may return."""
