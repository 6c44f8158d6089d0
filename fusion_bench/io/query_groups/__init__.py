"""Groups of queries as a ``dataset.yaml`` asks for them: found automatically, or from a file."""
