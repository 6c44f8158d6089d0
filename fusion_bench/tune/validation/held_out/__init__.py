"""The held-out evaluation of a search: its rules and its report."""
