"""What the console answers, without HTTP: read-only state, and pure functions of a setting."""
