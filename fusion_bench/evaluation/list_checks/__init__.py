"""What the scores and ranks of an input list say against it."""
