"""Differences under random signs, by query or by group."""
