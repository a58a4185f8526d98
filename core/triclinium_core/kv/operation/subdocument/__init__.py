"""Operations on parts of documents: requests, specs and codec."""
