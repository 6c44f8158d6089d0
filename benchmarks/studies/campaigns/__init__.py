"""Campaigns replayed: what ships where nothing is better, and what is found where something is."""
