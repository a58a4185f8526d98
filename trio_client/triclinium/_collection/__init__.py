"""Operations of a collection, grouped by kind."""
