"""Operators that let rows wait until enough is known of them."""
