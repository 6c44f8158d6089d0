"""Systems seen several times: every trial is evaluated, and a value is the mean over trials."""
