"""What the grades of several judges say of each other, and of systems."""
