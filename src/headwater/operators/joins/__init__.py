"""Operators that pair the rows of two inputs."""
