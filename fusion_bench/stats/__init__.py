"""Intervals, tests, corrections and comparisons of per-query values."""
