"""Power: detectable differences, and the queries that a difference needs."""
