"""All connections of a client: where they lead, when they are opened, and what keeps them alive."""
