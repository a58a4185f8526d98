"""``triclinium explain``: the reasons for a retry decision, with a module for each kind of client."""
