"""Helpers without knowledge of retrieval: files, text, HTTP, optional imports."""
