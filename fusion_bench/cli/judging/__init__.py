"""What ``judge`` does in each of its modes, and what it prints."""
