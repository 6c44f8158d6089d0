"""Dialects of search engines: one file each, found by name; none of them loads a connector."""
