"""What the fake nodes do: from the bytes of a request to the bytes of its reply, one module for each family of commands."""
