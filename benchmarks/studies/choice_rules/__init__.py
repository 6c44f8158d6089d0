"""Six rules of choice on trial: what each ships where no setting is better, and where one is."""
