"""One row per group: running totals, extremes, and functions of users."""
