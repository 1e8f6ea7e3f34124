"""The numbers that tune the engine for dense costs: `DEFAULT`, unless a caller passes others.

No result depends on them, only time.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """What the steps decide by; each field says its unit, and where it was measured."""

    # -- which attempt comes first -----------------------------------------------------------------

    least_for_core: int = 100
    """Rows from which on a core pays."""
    most_for_team: tuple[int, int, int] = 1024, 2560, 4096
    """Columns up to which a team is tried: if all vertices must be matched, if not, and with ties.

    There are many ties if a row has more equal costs than the second of `ties`.
    """
    steps_of_team: tuple[int, int] = 2**14, 2048
    """The most steps of a team: if all vertices must be matched in few columns, and otherwise.

    With 2**14, two clusters in 512 columns take 10 ms on an H200 instead of 92, and in 768 columns
    16 instead of 104; points take 6.6 instead of 15, and 11 instead of 13. In 1,000 columns, a team
    takes 6 ms for uniform costs, 18 for points and 31 for clusters, and a core 7 to 10, 25 and 121.
    """
    most_for_trees: int = 3000
    """Rows below which trees come before a core, if costs have few searches."""
    most_with_ties: int = 20_000
    """Rows below which they do for integers with ties."""
    ties: tuple[int, int] = 4, 32
    """The mean number of columns of equal cost of a row, between which there are ties for trees.

    With more, levels are as wide as the matrix.
    """
    trial: tuple[int, int] = 256, 2048
    """The most steps of these trees: until nine rows in ten are matched, and in all."""
    steps_for_most: int = 2048
    """The steps of the last trees until nine rows in ten are matched; at least one for each row."""
    steps_a_row: int = 16
    """Their steps for each row in all, beyond `steps_for_most`."""

    # -- the core ----------------------------------------------------------------------------------

    first: int = 64
    """The pairs of each row at the start of a core, by the first duals."""
    again: int = 32
    """The pairs of each row by better duals."""
    more: int = 16
    """The pairs of each row that join the core in a round."""
    too_many: int = 4
    """The mean number of negative slacks in a row above which the next duals are tried."""
    growth: int = 4
    """The factor by which the pairs of each row grow if the core has no full assignment."""
    most: int = 2**26
    """The most pairs that are chosen at once."""
    rounds: int = 64
    """The most rounds from one choice of duals."""

    # -- the auction before a second core ----------------------------------------------------------

    finest: int = 30
    """Bits: the last epsilon is the range of the costs divided by this power of two."""
    steps_a_launch: int = 2048
    """Bids and looks of a block in a launch: some hundredths of a second."""
    unmatched: tuple[int, int] = 16, 1024
    """Bounds of the unmatched rows at which an auction ends, which are one in 4096.

    On an H200, 16 in place of 8 take 158 ms instead of 180 for 10,000 points whose distances are
    maximised, 55 instead of 77 in space, 46 instead of 71 for costs of rank 4, and 222 instead of
    262 for two clusters of 4,000 points. With 32 or more, the trees that follow may take 200 to 300
    ms longer.
    """
    launches: int = 8
    """The most launches of an auction. More are a price war of few rows: epsilon falls then."""
    looks_a_row: int = 256
    """The most looks, on average, in all auctions. More are a price war."""


DEFAULT = Tuning()
