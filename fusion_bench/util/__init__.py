"""Helpers that know nothing of retrieval: text, files, environment, HTTP."""
