"""From text to a bound logical plan."""
