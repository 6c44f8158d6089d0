"""Share the application, options, output, progress and next steps among commands."""
