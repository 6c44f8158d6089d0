"""Many systems at once on the same aligned runs, by counting instead of sorting; exact."""
