"""Calls of providers: limits, retries, the circuit breaker, the chain from one to the next."""
