"""What people and CI systems read of a verdict and of an update."""
