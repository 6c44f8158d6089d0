"""What every page says of its judgments: whose, how complete, and what to judge next."""
