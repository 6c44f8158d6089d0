"""The console behind HTTP on 127.0.0.1: who may ask, what a request may hold, and the routes."""
