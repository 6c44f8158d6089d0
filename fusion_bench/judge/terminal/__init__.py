"""Judging in a terminal: query and document side by side, one key a grade."""
