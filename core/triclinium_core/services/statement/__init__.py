"""What query and analytics share: a statement in SQL++ with its parameters, and the times in their JSON."""
