"""The page of an evaluation: tables, findings and warnings from the stored report."""
