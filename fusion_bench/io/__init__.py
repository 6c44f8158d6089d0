"""Files to records and datasets: one reader a format."""
