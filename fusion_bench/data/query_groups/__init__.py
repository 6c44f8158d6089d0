"""Groups of queries that depend on each other, found in their texts, lists and judgments."""
