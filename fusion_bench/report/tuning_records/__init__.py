"""The stored record of a tuning run; everything shown to people is rendered from it."""
