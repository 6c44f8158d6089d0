"""Datasets that are made of what others published, of a user's own files, of logged searches."""
