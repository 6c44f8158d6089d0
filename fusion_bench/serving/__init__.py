"""What runs until it is stopped: the lists of one query, the mixing console, tools for agents."""
