"""The collections of docs/leaderboard.md, and the experiment with every method."""
