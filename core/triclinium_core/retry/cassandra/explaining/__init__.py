"""Single decisions for people who ask: ``explain`` in words, ``questions`` as data."""
