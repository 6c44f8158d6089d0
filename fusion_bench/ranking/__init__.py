"""Any system ranked, exactly: many at once by counting, or one with its whole final lists."""
