"""Means of people's values, from few of theirs and many of a machine's."""
