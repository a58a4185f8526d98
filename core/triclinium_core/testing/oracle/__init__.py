"""What must hold whatever goes wrong: what callers may be told, what nodes may be asked, and what excuses a failure."""
