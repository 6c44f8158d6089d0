"""The page of two reports: what changed in configuration, in numbers and in queries."""
