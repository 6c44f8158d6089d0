"""The same systems under the grades of each judge."""
