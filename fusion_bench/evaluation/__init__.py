"""A dataset prepared, systems assessed and compared, the records of a report."""
