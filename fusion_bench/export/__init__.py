"""Systems as engines' own configuration: how well that works, and what it costs."""
