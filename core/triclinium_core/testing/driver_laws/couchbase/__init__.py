"""Laws about operations, rows and lookups: only drivers of the client machine must keep them."""
