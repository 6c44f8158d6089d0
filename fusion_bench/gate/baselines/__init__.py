"""The committed baseline: its record, its file, and what may be compared with it."""
