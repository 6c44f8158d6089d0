"""The shapes in which JSON holds ranked lists: one module each."""
