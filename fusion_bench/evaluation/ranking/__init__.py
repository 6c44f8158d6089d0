"""Any system ranked: fitted, split into plain systems, and its final lists."""
