"""pytest plugin of ``triclinium``. It is a separate package, so that pytest loads it without the client."""
