"""Tuning on many machines."""
