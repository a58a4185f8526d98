"""Values and codecs of the key-value service: frames, topology and operations."""
