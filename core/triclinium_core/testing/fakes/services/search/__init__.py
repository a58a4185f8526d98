"""The search service, and the indexes that it keeps."""
