"""The services over HTTP as users meet them: statements and their rows."""
