"""Search engines: their fusions as dialects, connectors, pulled lists, exported configurations."""
