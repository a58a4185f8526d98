"""The neutral half of the driver: it feeds any machine and carries out the actions that every machine may order."""
