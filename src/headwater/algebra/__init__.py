"""The logical algebra: what a query means."""
