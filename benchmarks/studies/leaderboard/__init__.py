"""The collections of docs/studies/leaderboard.md, and the experiment with every method."""
