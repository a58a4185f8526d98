"""The answer to one request while it comes: rows are cut out of JSON that arrives in any cut."""
