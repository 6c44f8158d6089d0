"""The search space of a system and the objective on it."""
