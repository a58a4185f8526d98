"""Connection to one node: bootstrap, authentication, and unanswered requests."""
