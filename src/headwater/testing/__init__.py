"""Public tools for tests: timelines, random streams and plans, an independent oracle, and a battery of checks."""
