"""The last phase: how the plan that was chosen runs, on what, and over which columns."""
