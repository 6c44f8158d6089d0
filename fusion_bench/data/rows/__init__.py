"""Rows of judgments and ranked lists: read, checked, encoded, grouped by query and ranked."""
