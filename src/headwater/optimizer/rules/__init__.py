"""The laws, one per file."""
