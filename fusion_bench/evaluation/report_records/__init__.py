"""The result file: what a run found, query by query, and where it came from.

Everything shown to people is rendered from these records.
"""
