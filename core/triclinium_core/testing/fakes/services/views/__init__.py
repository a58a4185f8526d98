"""Views service and its design documents."""
