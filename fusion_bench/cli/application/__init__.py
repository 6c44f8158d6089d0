"""What commands share: the application, options, output, progress, next steps."""
