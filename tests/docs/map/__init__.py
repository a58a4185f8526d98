"""Page ``docs/internals/map.md``: layers, state machines, calls and modules, generated from the sources."""
