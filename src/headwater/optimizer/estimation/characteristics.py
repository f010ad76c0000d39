"""What a stream is to the cost model: how often elements come and how long they live, and what operators make of it.

Krämer describes a physical stream by the averages (d, l, g): the distance of two starts, the length of an interval, the
granule of time (22.2). On average l/d elements are valid at any instant. Here d and l are kept as the rate 1/d and as
the elements alive l/d, so that a relation that never changes (d infinite) and an element that never ends (l infinite)
need no path of their own; the formulas are his (OF 22.x, section 22.3.2), the same in these terms.

Where he decides by cases (OF 22.5 to 22.7), plans are estimated by continuous forms for Poisson arrivals, which agree
with his far from the border of the cases and with simulations on it.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Characteristics(NamedTuple):
    """Averages of one physical stream, in application time.

    >>> Characteristics.of(10, 1000)
    Characteristics(rate=0.1, alive=100.0, granule=1.0, endless=False)
    """

    rate: float
    """Elements that start in one instant, 1/d."""
    alive: float
    """Elements that are valid at one instant, l/d."""
    granule: float = 1.0
    """Starts and ends are multiples of it, g."""
    endless: bool = False
    """Elements never end: ``alive`` is what has gathered when the stream has run for its horizon."""

    @classmethod
    def of(cls, distance: float, lifetime: float, granule: float = 1.0) -> Characteristics:
        """From d, l and g."""
        return cls(1 / distance, lifetime / distance, granule)

    @property
    def distance(self) -> float:
        """Between the starts of two elements, d."""
        return 1 / self.rate if self.rate else math.inf

    @property
    def lifetime(self) -> float:
        """Of one element, l."""
        return self.alive / self.rate if self.rate else math.inf

    @property
    def grows(self) -> bool:
        """Whoever keeps its elements needs more and more room."""
        return self.endless and self.rate > 0


# -- stateless operators and joins ------------------------------------------------------------------------------------


def filtered(stream: Characteristics, selectivity: float) -> Characteristics:
    """OF 22.1 (errata E1: kept with the probability of the selectivity). OF 22.2, the map, changes nothing."""
    return Characteristics(stream.rate * selectivity, stream.alive * selectivity, stream.granule, stream.endless)


def united(*streams: Characteristics) -> Characteristics:
    """OF 22.3. Inputs of different granules: ours, the finest of them."""
    return Characteristics(
        sum(s.rate for s in streams),
        sum(s.alive for s in streams),
        min(s.granule for s in streams),
        any(s.endless for s in streams),
    )


def joined(left: Characteristics, right: Characteristics, selectivity: float = 1.0) -> Characteristics:
    """OF 22.4 with a selectivity (errata E4): a start on one side meets what is alive on the other."""
    return Characteristics(
        selectivity * (left.rate * right.alive + right.rate * left.alive),
        selectivity * left.alive * right.alive,
        min(left.granule, right.granule),
        left.endless and right.endless,
    )


def matched(left: Characteristics, right: Characteristics, selectivity: float, share: float = 1.0) -> Characteristics:
    """Ours: the semi-join. ``share``: the part of the left rows that can have a match at all.

    A row has m matches at an instant, Poisson; it is shown while there are any, anew whenever the first one comes.
    """
    absent = _absent(right, selectivity, share)
    again = left.alive * right.rate * selectivity * absent
    there = match_chance(right, selectivity, share)
    endless = left.endless and right.endless
    return _pieces(left.rate * there + again, left.alive * there, min(left.granule, right.granule), endless=endless)


def unmatched(left: Characteristics, right: Characteristics, selectivity: float, share: float = 1.0) -> Characteristics:
    """Ours: the anti-join, the rest of the semi-join; a row is shown anew whenever its last match ends."""
    absent = _absent(right, selectivity, share)
    again = 0.0 if right.endless else left.alive * right.rate * selectivity * absent
    alone = 1 - share + share * absent
    granule = min(left.granule, right.granule)
    return _pieces(left.rate * alone + again, left.alive * alone, granule, endless=left.endless)


def _pieces(rate: float, alive: float, granule: float, *, endless: bool) -> Characteristics:
    """Elements that others cut: a piece still lasts for a granule at least."""
    return Characteristics(min(rate, alive / granule), alive, granule, endless)


def match_chance(right: Characteristics, selectivity: float, share: float) -> float:
    """Ours: the chance that a row has a match now."""
    return share * (1 - _absent(right, selectivity, share))


def _absent(right: Characteristics, selectivity: float, share: float) -> float:
    """The chance that a row that can have a match has none now."""
    return math.exp(-right.alive * selectivity / share) if share else 1.0


# -- windows and changes of intervals ---------------------------------------------------------------------------------


def split(stream: Characteristics, length: float) -> Characteristics:
    """OF 22.8: pieces of so many instants; the snapshots stay, so do the elements alive."""
    if length >= stream.lifetime:
        return stream
    return Characteristics(stream.alive / length, stream.alive, min(stream.granule, length))


def rounded(stream: Characteristics, granule: float) -> Characteristics:
    """OF 22.9: what is shorter than a granule survives with probability l/ĝ, and then lasts for a granule."""
    if granule <= stream.granule:  # all of it begins at multiples already
        alive = max(stream.alive, stream.rate * granule)
        return Characteristics(stream.rate, alive, stream.granule, stream.endless)
    rate = stream.rate * min(1.0, stream.lifetime / granule)
    return Characteristics(rate, stream.alive, granule, stream.endless)


def time_window(stream: Characteristics, size: float, slide: float = 1.0) -> Characteristics:
    """OF 22.10 over chronons. Ours: a slide rounds both ends up to its multiples (17.1), as a granularity does."""
    return rounded(Characteristics(stream.rate, stream.rate * size, stream.granule), slide)


def unbounded_window(stream: Characteristics, horizon: float) -> Characteristics:
    """Ours: OF 22.10 with what has come by the horizon, since nothing ever leaves."""
    return Characteristics(stream.rate, stream.rate * horizon, stream.granule, True)


def row_window(stream: Characteristics, rows: float, partitions: float = 1.0, slide: float = 1.0) -> Characteristics:
    """OF 22.11, 22.12: the last rows of every partition are alive. Ours: of a longer slide some rows are never seen."""
    seen = min(1.0, rows / slide)
    return Characteristics(stream.rate * seen, partitions * rows if stream.rate else stream.alive, stream.granule)


def hop_window(stream: Characteristics, size: float, slide: float, shown: float | None = None) -> Characteristics:
    """Ours: a copy for each of the size/slide windows that hold the row, shown until the next report, or less long."""
    rate = stream.rate * size / slide
    return Characteristics(rate, rate * (slide if shown is None else shown), slide)


def session_wait(rate: float, gap: float) -> float:
    """Ours: how long a row waits for the end of its session, on average, if rows of its partition come at this rate.

    The busy period of a server that takes ``gap`` for each row and any number at once: (e^(rate*gap) - 1)/rate.
    """
    return math.expm1(min(rate * gap, 600.0)) / rate if rate else gap


def sampled(stream: Characteristics, period: float) -> Characteristics:
    """Ours: all that is alive, once a period, for an instant each time."""
    rate = stream.alive / period
    return Characteristics(rate, rate, period)


def instants(stream: Characteristics) -> Characteristics:
    """The same starts, valid for one instant each (Istream)."""
    return Characteristics(stream.rate, stream.rate, stream.granule)


# -- one row per value or group ---------------------------------------------------------------------------------------


def occupied(alive: float, values: float) -> float:
    """How many of the values have an element alive: each is Poisson with mean alive/values."""
    return -values * math.expm1(-alive / values) if values else 0.0


def distinct(stream: Characteristics, values: float) -> Characteristics:
    """OF 22.5 in continuous form: n*(1 - e^(-l/(n*d))) values are alive, whether n*d is below l or above.

    Ours: the same snapshots in the fewest elements, one a busy period of a value, as our operator emits them. A period
    begins at a granule point if the value was absent at the point before (e^(-l/(n*d))) and starts there.
    """
    if not values or not stream.rate or not stream.alive:
        return Characteristics(0.0, occupied(stream.alive, values), stream.granule, stream.endless)
    granule = min(stream.granule, stream.lifetime)
    starts = -math.expm1(-granule * stream.rate / values) / granule
    rate = values * starts * math.exp(-stream.alive / values)
    return Characteristics(rate, occupied(stream.alive, values), stream.granule, stream.endless)


def grouped(
    stream: Characteristics, groups: float = 1.0, apart: float = 1.0, present: float | None = None
) -> Characteristics:
    """OF 22.6 and 22.7 in continuous form, for Poisson arrivals and constant lifetimes.

    A group has a new row at a granule point where something starts or ends and something is left:
    (1 - e^(-x))*(1 + e^(-x) - e^(-l/d)), x = g/d, with d the distance in one group. What never ends only starts.
    Ours: of elements that come together and fall into the same group only one changes it; ``apart`` is the part that does.
    ``present``: how many groups have a row, if not as many as e^(-l/d) says.
    """
    there = occupied(stream.alive, groups) if present is None else present
    if not groups or not stream.rate or not stream.alive:
        return Characteristics(0.0, there, stream.granule, stream.endless)
    granule = min(stream.granule, stream.lifetime)
    x = granule * stream.rate * apart / groups
    change = -math.expm1(-x)
    if not stream.endless:
        change *= math.exp(-x) + there / groups
    return Characteristics(groups * change / granule, there, stream.granule, stream.endless)


def touched(elements: float, groups: float) -> float:
    """How many groups so many elements fall into: n*(1 - (1 - 1/n)^m), Cardenas' formula."""
    if elements <= 1:
        return elements
    return groups * -math.expm1(elements * math.log1p(-1 / groups)) if groups > 1 else 1.0


def coalesced(stream: Characteristics, values: float, longest: float = math.inf) -> Characteristics:
    """Ours (22 has none): an element is merged if an equal one starts where it ends, q = 1 - e^(-g/(n*d)).

    d' = d/(1-q) and l' = l/(1-q), so the elements alive stay; but no piece is longer than ``longest``.
    """
    apart = math.exp(-stream.granule * stream.rate / values) if values and stream.rate else 1.0
    rate = max(stream.rate * apart, stream.alive / longest)
    return Characteristics(rate, stream.alive, stream.granule, stream.endless)


def topmost(stream: Characteristics, rows: float, partitions: float = 1.0, *, ranked: bool = False) -> Characteristics:
    """Ours: of m elements per partition the first k are shown. An element enters with probability k/m; one that leaves, by
    its end, lets the next one in, if there is one. With a rank each change moves half of the rows below it.
    """
    if not partitions or not stream.alive:
        return stream
    there = occupied(stream.alive, partitions)
    crowd = stream.alive / there
    share = min(1.0, rows / crowd)
    rate = stream.rate * share * (1 if stream.endless else 2 - share)
    if ranked:
        rate *= 1 + min(rows, crowd) / 2
    return _pieces(rate, stream.alive * share, stream.granule, endless=stream.endless)
