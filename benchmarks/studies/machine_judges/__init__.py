"""Machine judges simulated from real ones: which grade they give where people give another."""
