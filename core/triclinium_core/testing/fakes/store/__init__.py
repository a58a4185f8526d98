"""State of the fake nodes: documents, vbucket maps, and connections."""
