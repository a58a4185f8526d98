"""The response to one request while it arrives: its rows, ids and limits."""
