"""``triclinium timeline``: what happened to operations, requests and connections on a tape."""
