"""``triclinium explain``: the reasons of a retry decision, with a module for each kind of client."""
