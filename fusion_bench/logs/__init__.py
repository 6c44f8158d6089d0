"""Logged searches → a dataset, and an experiment that replays production."""
