"""The functions that expressions may call: one row per function, by what they work on."""
