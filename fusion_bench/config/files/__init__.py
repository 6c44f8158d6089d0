"""Configuration and stored records as files: YAML with the line of each value, JSON, schemas."""
