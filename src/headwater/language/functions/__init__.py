"""Functions: what SQL may call, and what becomes of a call."""
