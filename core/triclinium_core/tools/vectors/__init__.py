"""Questions and answers as JSON, as ``triclinium explain --batch`` reads and writes them."""
