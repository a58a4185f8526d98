"""The query service: statements in SQL++, their plans, and what comes beside the rows."""
