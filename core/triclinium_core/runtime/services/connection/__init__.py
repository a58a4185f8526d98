"""One connection to one endpoint: HTTP/1.1, and the header that shows who asks."""
