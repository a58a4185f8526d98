"""The plugin of pytest that comes with ``triclinium``: a package of its own, so that loading it loads no client."""
