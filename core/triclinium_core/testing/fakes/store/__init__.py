"""What the fake nodes know: documents, their parts, who has which vbucket, and the state of connections."""
