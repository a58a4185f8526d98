"""``triclinium docs``: these pages on this machine, with the playground."""
