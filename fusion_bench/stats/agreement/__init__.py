"""Agreement between the grades of two judges."""
