"""Differences of systems under people's grades, from few of theirs and many of a machine's."""
