"""Where a tick runs: in this process, or as jobs of Spark."""
