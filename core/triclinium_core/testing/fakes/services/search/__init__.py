"""Search service and its indexes."""
