"""Pages as one HTML file each: no network, opened from disk, read without script as well."""
