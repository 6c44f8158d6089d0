"""Agreement of judges, before any of their grades count."""
