"""The leaderboard: every fusion method on collections of judged queries, compared and stored."""
