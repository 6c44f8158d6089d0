"""Progress of long work: a bar on a terminal, lines elsewhere."""
