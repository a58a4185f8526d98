"""``triclinium docs``: the pages of the documentation on this machine, with the playground."""
