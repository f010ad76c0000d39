"""What a user can set with ``SET name = value``."""

from __future__ import annotations

from attrs import evolve, field, fields, frozen

MOST_SHARDS = 4096
"""Into so many parts keys can be split: more would be too small to be worth a task."""
SMALL_TICK = 50_000
"""A tick of up to so many rows runs in the driver: a Spark job would take longer to start than to run."""


@frozen
class Settings:
    """The settings of a script; each lists its allowed values."""

    unbounded_state: str = field(default="allow", metadata={"values": ("allow", "error")})
    """An UNBOUNDED window under an operator that keeps elements: a notice, or an error (as in PIPES)."""
    empty_aggregate: str = field(default="no_row", metadata={"values": ("no_row", "one_row")})
    """An aggregate without GROUP BY where there are no rows: nothing (PIPES), or one row in [0, infinity), as in SQL."""
    optimizer: str = field(default="on", metadata={"values": ("on", "off")})
    """Are plans rewritten, or run as they are written?"""
    without_rules: str = field(default="", metadata={"values": ()})
    """Rules of the optimizer that are switched off, separated by commas."""
    memory_aware: str = field(default="off", metadata={"values": ("on", "off")})
    """Do rows wait before a part of a strong plan that would make more of them, while what is above it waits anyway?"""

    step_bytes: str = field(default=str(2 << 30), metadata={"values": (), "number": True})
    """How many bytes of results the operators of a level may make in one tick and shard: more is an error."""

    @staticmethod
    def names() -> tuple[str, ...]:
        return tuple(a.name for a in fields(Settings))

    @staticmethod
    def values(name: str) -> tuple[str, ...]:
        """What it can be; nothing where any text will do."""
        return getattr(fields(Settings), name).metadata["values"]

    @staticmethod
    def is_number(name: str) -> bool:
        """Must it be a whole number?"""
        return getattr(fields(Settings), name).metadata.get("number", False)

    def with_value(self, name: str, value: str) -> Settings:
        return evolve(self, **{name: value})
