"""The table of commands for nodes."""
