"""The page of a tuning run: tables, findings and a recommendation from the stored record."""
