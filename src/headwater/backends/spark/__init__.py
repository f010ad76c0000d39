"""Spark: the session, what runs in its jobs, and how a tick is committed."""
