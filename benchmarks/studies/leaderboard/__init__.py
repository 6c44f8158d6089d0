"""The leaderboard: every method on every collection, with what a user would ask of it."""
