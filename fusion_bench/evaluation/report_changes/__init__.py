"""What changed from one report of an experiment to the next, without a new computation."""
