"""Checks of systems with several trials: values, bounds, powers, and what one trial could tell."""
