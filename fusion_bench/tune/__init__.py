"""Tuning: the search for better numbers, and whether they are worth shipping."""
