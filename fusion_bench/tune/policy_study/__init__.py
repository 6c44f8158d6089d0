"""What a per-query policy is worth: against fixed numbers, an oracle, and shuffled features."""
