"""Strict models of configuration, tunable parameters, the registry of methods."""
