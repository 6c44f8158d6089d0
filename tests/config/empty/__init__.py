"""A folder without plugins."""
