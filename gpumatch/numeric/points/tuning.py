"""The numbers that tune the engine for costs that are computed. No result depends on them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Tuning"]


@dataclass(frozen=True)
class Tuning:
    """What the steps decide by; each field says its unit. The values are those of the CPU."""

    stored: int = 2**20
    """Pairs up to which the matrix is made and given to the engine for matrices: 8 MiB."""
    in_boxes: int = 6
    """Coordinates up to which a tree finds the cheapest columns; beyond, all pairs are computed."""
    nearest: int = 20
    """Nearest points of each row and of each column that are candidates."""
    nearest_of_many: int = 32
    """Nearest points where all pairs are computed: one pass finds them, whatever their number."""
    priced: int = 24
    """Candidates of each row and of each column at the prices of a sample.

    The prices are wrong by some squares of the spacing of points, within which so many columns lie.
    """
    shared: int = 8
    """Candidates of a known point that torn points near it get, if they are in another branch."""
    given: int = 8
    """Candidates of each row at the prices that a caller has given."""
    useless: float = 1 / 16
    """The share of rows that the nearest leave unmatched from which a sample's take their place."""
    sampled_first: int = 2
    """Coordinates up to which a sample is taken before the nearest are looked at."""
    added: int = 8
    """Columns of a row that one pricing adds, at most."""
    ahead: int = 8
    """Columns of each row that the first pricing adds, where all pairs are computed.

    10,000 normal points in 64 dimensions take two pricings instead of four.
    """
    sampled: int = 4
    """A sample has one vertex for so many."""
    least_sampled: int = 1024
    """Rows from which prices of a sample are tried, and half of those from which they come first.

    2,000 points in clusters take 0.15 instead of 0.4 s of processor time with 1,024 as with 2,048.
    If the sample came first for all from 1,024 on, uniform ones would take a third longer.
    """
    few: int = 256
    """Unmatched rows up to which all their pairs with unmatched columns are candidates."""
    by_rows: int = 3
    """Pricings after which columns name rows, too, if more than an eighth of the rows have more."""
    part: int = 1000
    """Rows of a part, where more than half of all rows are unmatched: 8 MB as a matrix."""
    bid_again: float = 1 / 32
    """The share of unmatched rows from which rows of a core bid again, rather than get paths.

    The cores of 10,000 points in 20 clusters take 3.0 instead of 4.7 seconds of processor time.
    """
    share: float = 1 / 4
    """The share of all pairs from which on the matrix takes less time and memory than the core."""
    places: float = 1 / 4
    """The share of all pairs up to which the pairs of places are solved in place of copies."""
    places_stored: int = 2**25
    """The most pairs of places that are solved in place of copies: 256 MiB."""
    rounding: float = 2.0**-52
    """What pairs may lack without another round, in shares of the largest cost of a pair.

    The duals of their rows are lowered by as much, so the result stays a proof.
    """
