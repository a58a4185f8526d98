"""The analytics service: statements in SQL++ for analytics, and what is told beside the rows."""
