"""Our policies and strategies in the shape that other people's packages ask for; each needs the extra of its name."""
