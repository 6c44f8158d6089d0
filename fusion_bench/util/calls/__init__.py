"""Calls of services: their rate, and their retries."""
