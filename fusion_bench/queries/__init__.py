"""Queries for a dataset that has none: drawn from a log, or written from documents by a model."""
