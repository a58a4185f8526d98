"""The laws of operations, rows and look-ups, which a driver of the client machine keeps as well."""
