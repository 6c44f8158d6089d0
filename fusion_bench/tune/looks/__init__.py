"""Looks at held-out queries: the ledger that counts them, and the level of each."""
