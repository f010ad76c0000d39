"""The NEXMark auction streams as a source: ``nexmark('bid', rate => 10000, disorder => '2 seconds')``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from attrs import frozen

from headwater.errors import InputError
from headwater.language.text import did_you_mean
from headwater.model.schema import Schema
from headwater.sources.base import Piece, Reader, Split
from headwater.sources.conform import UnfitError, convert
from headwater.sources.generated import GeneratedSource
from headwater.sources.left_out import can_leave_out
from headwater.sources.nexmark_generator import NEXMARK_SCHEMAS, NexmarkGenerator

_PIECE = 100_000


@frozen
class NexmarkReader(Reader):
    """Makes the events of a range of arrival slots; the intake gives them the declared types."""

    generator: NexmarkGenerator
    columns: Schema
    """The generated columns that are declared, with their own types."""
    declared: Schema
    """The same, as they are declared."""

    def read(self, split: Split, columns: Collection[str] | None = None) -> Iterator[Piece]:
        first, last = split["from"], split["to"]
        made_up = self.columns.to_arrow()
        left_out = can_leave_out(
            made_up, self.declared, columns, is_never_null=lambda place: not made_up.field(place).nullable
        )
        made = self.columns.select([name for name in self.columns.names if name not in left_out.values()])
        for start in range(first, last, _PIECE):
            stop = min(start + _PIECE, last)
            batch, where = self.generator.batch(start, stop, made), f"events {start} to {stop}"
            yield Piece(batch, where=where, left_out=frozenset(left_out))


class NexmarkSource(GeneratedSource):
    """One of the three streams; those of one seed, rate and start fit together.

    Paced, events arrive at ``rate`` by the wall clock; otherwise as fast as they are read. The declared columns are those
    of ``NEXMARK_SCHEMAS``, or some of them.
    """

    def __init__(
        self,
        generator: NexmarkGenerator,
        schema: Schema,
        *,
        paced: bool = True,
        rows_per_tick: int = 2_000_000,
        wall_clock: Callable[[], int] | None = None,
        since: int | None = None,
    ) -> None:
        self.schema, self.generator = schema, generator
        self.rate, self.paced, self.rows_per_tick, self.wall_clock = generator.rate, paced, rows_per_tick, wall_clock
        self.finite, self.since = generator.events is not None, since
        self.reader = NexmarkReader(generator, _generated_columns(generator.kind, schema), schema)

    @property
    def numbers(self) -> int | None:
        return self.generator.slots

    def rows_of(self, first: int, last: int) -> int:
        return self.generator.count(first, last)

    def total_rows(self) -> int | None:
        """Of the events, not of the slots: late ones come in slots after the last event."""
        return None if self.generator.events is None else self.generator.count(0, self.generator.events)

    def __repr__(self) -> str:
        return f"nexmark({self.generator.kind!r})"


def _generated_columns(kind: str, schema: Schema) -> Schema:
    made = NEXMARK_SCHEMAS[kind]
    names = {f.name.casefold(): f for f in made}
    for field in schema:
        found = names.get(field.name.casefold())
        if found is None:
            hint = did_you_mean(field.name, made.names, all_of_them="There are")
            raise InputError("UNKNOWN_COLUMN", f'nexmark has no column "{field.name}" in "{kind}"', hint=hint)
        try:
            convert(NexmarkGenerator(kind).batch(0, 0).column(found.name), field)
        except UnfitError as problem:
            message = f'nexmark cannot fill column "{field.name}" of "{kind}"'
            raise InputError(
                "TYPE_MISMATCH", message, detail=f"The {problem}.".replace("The column", "Column")
            ) from None
    return Schema(tuple(names[f.name.casefold()] for f in schema))
