"""Operators that go through the endpoints of rows in the order of time."""
