"""Judging: pools, judges (people or models), agreement of judges, queries for a dataset."""
