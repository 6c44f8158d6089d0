"""The whole gate command on made projects whose right answer is known."""
