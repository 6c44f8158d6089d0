"""Which documents, judged, could still change the comparison that decides."""
