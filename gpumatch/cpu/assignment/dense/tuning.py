"""The numbers that tune the engine for dense costs: `DEFAULT`, unless a caller passes others.

No result depends on them, only time. A share is of the rows, if nothing else is said. "Entries" are
those of the matrix, rows times columns.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """What the steps decide by; each field says its unit, and where it was measured."""

    # -- which form --------------------------------------------------------------------------------

    small: int = 2**17
    """Entries up to which shortest augmenting paths are all that is tried: they take milliseconds.
    """
    middle: int = 2**21
    """Entries up to which paths in the whole matrix come first: it is in the caches."""
    patience: int = 30_000
    """Lines that paths in the whole matrix may be expected to read yet, if an auction may follow.

    In clusters, 700, 1,000 and 1,400 rows take 38, 72 and 133 ms with 30,000, and 49, 75 and 140
    with 40,000. With 20,000, they take 50, 82 and 154.
    """
    lone_patience: int = 100_000
    """Lines if columns may stay unmatched, so that no auction follows, or if many costs tie.

    Of 891 rows in clusters, with 200 values, an auction takes 80 to 220 ms, and the paths 26 to 77.
    """
    first_step: float = 1
    """The share of the entries that they read before they are judged.

    After an eighth, 903 rows in clusters, with 200 values, expect too many lines: 68 ms, not 44.
    """
    spread_out: float = 1 / 16
    """The share of rows that must be the cheapest of a column: else all want the same columns."""

    in_order: float = 2.0**-7
    """The share of their range by which costs may miss being Monge, but not an order of samples.

    Rounded costs, and those with noise, are near enough to the order for short paths.
    """

    # -- ties --------------------------------------------------------------------------------------

    ties: float = 3
    """Tight columns of an unmatched row, on average, from which on tight pairs are matched first.

    Costs that are drawn from as many integers as there are rows have 1 to 2.
    """
    tied: float = 1 / 16
    """The share of the unmatched rows that these must match, or it is not tried again."""

    # -- the trial ---------------------------------------------------------------------------------

    trial: float = 1 / 2
    """The share of the entries that the trial's paths may be expected to read yet.

    With 4, 1/2 and 1/4, 2,000 rows read 18, 11 and 8 times the matrix for distances in the plane,
    14, 4 and 4 times for costs of rank 16, 4.8, 4.8 and 7 times for points in space, and 1.1 times
    for costs drawn at random.
    """
    known: float = 3
    """Readings of all entries after which the trial by known columns ends, whatever is expected."""
    lines: float = 10
    """Readings that paths by whole lines, which follow, may be expected to take yet; 0: no such.

    A reading by lines takes a quarter of the time of one by known columns with 2,000 rows, and two
    thirds with 4,000, which do not fit into the caches. After a quarter of a reading, 2,000 rows of
    distances on a line or in a narrow strip expect 4 to 8 readings, and take 18 to 55. Points in
    the plane expect 11, costs of rank 16 14, and two clusters or costs of rank 2 over 30.
    """
    short: float = 1 / 16
    """Readings by known columns for each path, beyond which paths go by whole lines.

    With 2,000 rows and 2,020 columns, costs of rank 3 read 0.06 times the entries for a path, and
    take half the time that lines take. Two clusters read 0.9 times, and take six times as long.
    """
    short_of_ties: float = 1 / 100
    """Readings for each path after an auction, where many rows are unmatched only if costs tie."""
    step: float = 1 / 8
    """The share of the entries that paths read before the engine judges them."""

    # -- the core ----------------------------------------------------------------------------------

    many: float = 1 / 8
    """The share of unmatched rows after the bids beyond which a core comes before the trial.

    Of 2,000 and 5,000 rows, bids leave 3 to 9 % unmatched if costs are drawn at random, 14 to 17 %
    in space, and 22 % in the plane. A core takes 1.2 times as long as the trial for the first.
    """
    too_many: float = 1 / 3
    """The share beyond which there is no core: rows want the same columns.

    Costs of rank 16 have 37 to 48 %, and distances that are maximised 96 %.
    """
    joined: int = 256
    """Columns that no row may know, or rows that a matching of the core may leave unmatched.

    All pairs of such rows and columns join the core.
    """
    core: float = 1 / 8
    """The share of all entries beyond which a core is given up."""
    bid_again: float = 1 / 32
    """The share of the rows without a tight column from which rows of a core bid again.

    With 1/128, 1/32, 1/8 and paths only, the cores of 5,000 points in the plane take 325, 235, 217
    and 419 ms, and those of squared distances 298, 304, 386 and 644.
    """

    # -- the auction -------------------------------------------------------------------------------

    first: int = 4
    """The first epsilon is at most the range of the costs divided by this."""
    gentle: float = 0.7
    """The first epsilon is at most this times the lower quartile of what a row could save."""
    crowd: float = 1 / 16
    """The share of the rows beyond which that is so; if fewer are unmatched, `gentlest` holds."""
    gentlest: float = 0.15
    """The share of the quartile if few rows are unmatched.

    5,000 points in the plane, of which 140 are unmatched, take 0.9 s, and 1.4 s with 0.7.
    With more unmatched rows, 0.15 reads 20 to 60 % more than 0.7 for costs of rank 3 and products.
    """
    sample: int = 64
    """Rows that the engine takes for a sample of all."""
    factor: int = 5
    """From one epsilon to the next. Bertsekas advises 4 to 10."""
    calm: float = 1 / 200
    """The share of rows below which the next epsilon is finer by `factor` cubed.

    A phase of so few bidders is short.
    """
    finest: float = 2.0**-36
    """The last epsilon, as a share of the range of the costs."""
    fine: int = 2**10
    """The last epsilon of integers is at least 1 divided by this."""
    few: int = 8
    """Rows that may be unmatched at the end of a phase."""
    each: int = 32
    """Unmatched rows for each thread beyond the first."""
    shrink: int = 8
    """Threads share the bidders anew when each has only this part of its share."""
    most: int = 64
    """How many times a phase may read all entries. A phase that reads more is a price war."""
    war: float = 8
    """Readings of all entries in the first phase, after which its epsilon is made coarser.

    Other costs than clusters took 1 to 7.
    """
    coarser: float = 25
    """The factor by which a war makes epsilon coarser: two steps of `factor`."""
    wars: int = 3
    """How many times wars may make it coarser."""
    faster: float = 2
    """How many entries paths by whole lines read while an auction reads one, on one thread.

    An entry takes the auction 0.8 to 2.9 nanoseconds, and paths 0.4 to 1.
    """
    rounding: float = 2.0**-50
    """The share of costs and prices by which a float's pair may miss being tight."""


DEFAULT = Tuning()
