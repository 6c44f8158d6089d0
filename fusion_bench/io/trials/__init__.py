"""Lists of several trials: one system's answers, seen several times."""
