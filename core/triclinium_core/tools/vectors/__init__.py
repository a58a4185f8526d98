"""Questions about retry decisions and their answers as JSON, which ``triclinium explain --batch`` reads and writes."""
