"""The query service: statements in SQL++, their plans, and what is told beside the rows."""
