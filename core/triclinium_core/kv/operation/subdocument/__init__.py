"""Parts of documents: what is asked for, and how it travels."""
