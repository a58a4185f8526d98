"""``triclinium explain``: the reasons of a retry decision, with one module for each tradition."""
