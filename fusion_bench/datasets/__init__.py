"""Datasets that are made of what others published, or of a user's own files."""
