"""Calls of services and of user code: their rate, their retries, and what they may raise."""
