"""Everything that a page shows as data frames."""
