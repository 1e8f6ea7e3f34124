"""The numbers that tune the engine for sparse costs: `DEFAULT`, unless a caller passes others.

No result depends on them, only time. A share is of the rows, if nothing else is said. "Entries" are
the stored costs of the problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["DEFAULT", "LONG", "SHORT", "SPARE", "Effort", "Tuning"]


class Effort(NamedTuple):
    """How long the engine tries to do without an auction.

    `looks_ahead`: True if rows first take the columns that one step of looking ahead finds, in
    problems that match all columns. `bids`: bids without an epsilon for each unmatched row in
    a round of them. `reads`: how many times paths may be expected to read all entries, to judge by
    the first paths. `unmatched`: the share of the rows that paths may serve.
    """

    looks_ahead: bool
    bids: int
    reads: float
    unmatched: float


SHORT = Effort(looks_ahead=True, bids=0, reads=4, unmatched=1 / 40)
SPARE = Effort(looks_ahead=True, bids=4, reads=6, unmatched=1)
LONG = Effort(looks_ahead=False, bids=12, reads=4, unmatched=1 / 8)


@dataclass(frozen=True)
class Tuning:
    """What the steps decide by; each field says its unit, and where it was measured."""

    # -- between two returns to Python -------------------------------------------------------------

    budget: int = 2**22
    """Entries that a kernel reads before it returns to Python: a tenth of a second."""
    turning: int = 2**24
    """Entries that a kernel reads before it returns while another thread transposes the costs."""

    # -- the trial ---------------------------------------------------------------------------------

    trial: Effort = SHORT
    """The trial of most costs."""
    trial_with_spare: Effort = SPARE
    long_trial: Effort = LONG
    """The trial of costs that differ by orders of magnitude: a few bids serve most rows there.

    In a KKT matrix of 200,000 rows, bids without an epsilon serve all rows but 363, and read all
    entries 4.2 times. Looking ahead would serve half of the 62,150 rows that are unmatched before,
    and takes longer than the bids that serve them. In matrices of blocks it serves most rows, but
    bids alone still take a tenth less. For other costs these bids take as long as a first auction,
    and save the later auctions little.
    """
    served: float = 4 / 5
    """The share of its rows that a round of these bids may leave unmatched if another follows."""
    chained: int = 2**17
    """Entries up to which these bids follow each other in chains, if columns may stay unmatched.

    Then 24 problems of `few_dear` and 35 of `wide_integers` (up to 100,000 entries, with a limit or
    spare columns) read all entries 3.6 and 2.8 times in the mean, and 7.2 and 6.2 times with rounds
    of bids. 800,000 entries at random (100,000 and 120,000 rows) take 61 ms instead of 47.
    """
    small: int = 2**12
    """Entries up to which paths are always tried.

    An auction has an overhead of half a millisecond, and its first call compiles for a second more.
    """
    small_reads: int = 24
    """How many times paths may read all entries of such a small problem."""
    growth: float = 1.3
    """The power of the unmatched columns by which the readings of all paths grow, if some stay so.

    Paths of 8,000 rows (16 nearest of 20,000 x 20,200 points) read all entries 1, 2, 4, 8 and 16
    times until 5,200, 3,800, 2,300, 1,400 and 840 columns are unmatched.
    """
    step: float = 1 / 4
    """The share of the entries that paths read before the engine judges them; at least `small`."""
    probe: float = 1 / 16
    """The share that the first paths read before rows bid, if columns may stay unmatched."""
    sample: int = 2**10
    """Rows that the engine takes for a sample of all."""
    choice: int = 2
    """Tight columns of an unmatched row, on average, from which on all tight pairs are matched."""
    group_first: float = 3 / 4
    """The readings after which paths in costs of few values are first judged.

    After r readings, 2 / 4**r of their rows may be unmatched. After 3/4 and 1, two far clusters
    (the costs 1 and 8, 5,000 to 80,000 rows) leave 0.64 and 0.36 of these rows unmatched at most
    where paths are better than the auction. Where they are worse (other values and random places),
    they leave 0.86 after 3/4.
    """
    group_steps: int = 4
    """The readings from which on no fewer rows need be matched: 1 in 128 may be unmatched."""
    group_reads: int = 16
    """How many times these paths may read all entries."""
    middle: int = 2**17
    """Entries up to which phases of searches decide whether a full assignment exists.

    A maximum matching decides for more entries. Its first call compiles for half a second more.
    """
    patience: int = 16
    """How many times searches from single rows may then read all entries before that matching."""

    # -- the auction -------------------------------------------------------------------------------

    bid_again: float = math.inf
    """The share of the rows that must have no tight column at given prices for rows to bid there.

    Else they get paths, as rows of a start that is nearly optimal had better do.
    """
    first: int = 4
    """The first epsilon is at most the range of the costs divided by this."""
    gentle: float = 0.7
    """The first epsilon is at most this times what a typical row could save.

    It is no simple fraction, because costs that are small integers would tie. If columns may stay
    unmatched, the typical saving is the lower quartile of what dearer columns cost their rows more
    than the cheapest. If all columns must be matched, it is what the second of these costs, however
    many entries a row has, times the share of unmatched rows: columns bid in turns then, so that
    the last rows start no price war, and the trial's pairs are worth keeping. (The quartile would
    be the fourth of 16 entries, and take a tenth longer.)
    """
    reach: float = 2.0**20
    """How many first epsilons a bid of floats may add to what its bidder pays, or it doubles that.

    exp(8 normal) on 80,000 rows reads all entries 14 times then, and 62 to 67 times without it:
    columns of one entry bid the range of the costs, and exact paths closed a coarse gap.
    """
    factor: int = 16
    """From one epsilon to the next. Bertsekas advises 4 to 10, and 8 takes up to 4 % longer."""
    factor_after_war: int = 5
    """The same after a price war.

    Epsilon begins so high then that its first phases move most prices. With 5, 8 and 16, squared
    distances on a line (4,916 rows with 64 entries) read all entries 95, 109 and 129 times.
    """
    many: float = 1 / 4
    """The share of rows that must have bid in a phase for an epsilon below `finest` to follow.

    Squared distances in two far clusters (4,884 rows) read all entries 112 times so, and 144 times
    if epsilon ends at `finest`.
    """
    calm: float = 1 / 200
    """The share of rows below which the next epsilon is finer by `factor` cubed.

    A phase of so few bidders is short.
    """
    finest: float = 2.0**-20
    """The last epsilon, as a share of the range of the costs, if few pairs are slack."""
    least: float = 2.0**-50
    """The last epsilon of floats, as a share of most prices, and of the first epsilon."""
    loose: float = 1 / 64
    """The share of the rows whose pairs may be slack before an epsilon below `finest`.

    If costs differ by orders of magnitude, hardly any row must bid at that epsilon, but a third of
    all pairs is slack.
    """
    fewest: int = 4
    """Rows that may be unmatched at the end of the first phase; twice as many after each other one.

    At a coarse epsilon, the last rows get to far columns at once. At a fine one they would bid for
    long, and rows that are unmatched in the end have long paths.
    """
    few: int = 16
    """Rows that may be unmatched at the end of any phase."""
    few_paths: int = 16
    """Paths that serve better than a phase: each reads all entries once, at most."""
    tail: float = 1 / 128
    """The share of the rows below which unmatched columns bid, too."""
    early_tail: float = 1 / 32
    """The share below which they bid in the first phase and after a war, if bids of rows are slow.

    With 0, 1/32 and 1/16, `decades` of 5,000 rows reads all entries 31, 8 and 8 times, and the
    nearest of 7,500 points in space 39, 31 and 32 times.
    """
    early_reads: int = 4
    """How many times these may still be expected to read all entries, or they are slow."""
    turns: int = 8
    """How often rows and columns in turns may read all entries before a joint search.

    With 4, 8, 16 and 32, two far clusters of unequal sizes (80,000 rows) read all entries 181, 181,
    220 and 265 times, and the 28 nearest of 60,000 points 125, 89, 80 and 190 times. A joint search
    takes four times as long for an entry as a bid.
    """
    few_values: int = 64
    """The range of costs over their least difference, up to which ties make bids slow.

    If the first phase has read all entries `turns` times then, exact joint searches follow. With 0
    and 1 on five entries a row (20,000 rows), they read all entries 6 times, and the auction 80
    times. On more values the first phase mostly ends before.
    """
    tied: float = 1 / 16
    """The epsilon that ends the auction of few values, as a share of their least difference."""
    slow: float = 1 / 16
    """The share of the unmatched rows that an exact joint search must match if others follow."""
    poor: int = 4
    """Joint searches with few paths that make a price war, if a coarser epsilon may follow.

    One is enough if turns after it serve no row.
    """
    each: int = 32
    """Unmatched rows for each thread beyond the first."""
    each_in_turns: int = 256
    """Unmatched rows for each thread if rows and columns bid in turns; half as many end its turns.

    Fewer rows compete for the same columns, and threads undo each other's bids. With 32, bids in
    turns of two threads read up to five times as much as those of one: 2.4 and 2.2 readings instead
    of 0.4 and 0.1 at the finest epsilons of 30,000 points with their 16 nearest.
    """
    shared_rows: int = 2**16
    """Rows of a square matrix from which threads are shared out by its entries.

    In smaller ones, the prices fit into the cache of a processor, and two threads that bid take
    them from each other. On a quiet machine, two threads take 0.93 to 1.43 times as long as one on
    ten matrices of 8,192 to 20,000 rows, 1.14 times in the mean, and 1.55 times on far clusters of
    40,000 rows. From 80,000 rows on, they are faster on most.
    """
    unshared: int = 16
    """Fewer rows have threads for their entries divided by this."""
    shrink: int = 8
    """Threads share the bidders anew when each has only this part of its share."""
    longest: int = 64
    """How many times a phase may read all entries, or be expected to: else it is a price war.

    It is twice as many after each war whose epsilon is no coarser than that of an earlier one.
    """
    trusted: int = 16
    """How many times a phase has read all entries when it is first judged by its progress."""
    doubted: int = 4
    """The readings for the first phase and after a war, if all rows and columns must be matched.

    What such a phase is expected to read counts for less, as it has read less than `trusted`.
    """
    pace: int = 2
    """Readings of all entries between two counts of the waiting rows.

    Such a phase is not judged as long as its rows get fewer as fast as before. In a war, they get
    fewer at two thirds of the rate after each count.
    """
    steady: float = 0.8
    """The share of the rate before that is as fast."""
    little: float = 1 / 64
    """The rate, as the logarithm of the rows for each reading, that is not."""
    most: int = 512
    """How many times a phase may read all entries before a war ends the auction.

    With 128, 56,133 of 80,000 rows of two far clusters of unequal sizes have no column when paths
    begin.
    """
    coarser: int = 16
    """From the epsilon of a price war to the next at least, if all rows and columns are matched.

    The next one is halfway to the range of costs in orders of magnitude, if that is more. Joint
    searches and bids so find the least epsilon at which far columns are reached, and no phases at
    coarser ones undo the prices. With 16, 32 and 64, fifty problems of two clusters and of nearest
    points take 0.71, 0.72 and 0.77 of what they take with 256 and no second search. If it rises by
    16 alone, far clusters of 5,000 rows read all entries 55 times instead of 48, and squared
    distances on a line (4,916 rows) 173 times instead of 95.
    """
    coarser_with_spare: int = 256
    """The same if columns may stay unmatched, so that no joint search follows a war."""
    phases: float = 1.4
    """What an auction is expected to read in all, as a multiple of its first phase."""
    rival_reads: int = 4
    """How many times an auction may read all entries before its rival takes the first turn."""
    promising: float = 3 / 4
    """The share of what the auction is expected to read yet that its rival may expect to read."""
    worthwhile: int = 4
    """The readings that the rival must be allowed to expect, or it does not begin.

    Most auctions end before, so that nothing is lost on them.
    """
    boldest: int = 4
    """How many times what the auction has read the rival may read in any case."""
    probed: float = 1 / 64
    """The share of what the auction has read that its rival may read, whatever it expects."""
    long_paths: int = 128
    """Paths are long once no more rows have one for each reading of all entries.

    Where auctions are better, more rows have: 3 to 7 % of 1,386 to 45,266 rows after a 16th of a
    reading. With 32, two far clusters with the costs 1 to 200 read all entries up to 141 times,
    where paths alone read them 7 to 9 times; with 128 they read them 19 to 24 times.
    """
    hardly_any: int = 4
    """Values of costs up to which paths are taken for long from the beginning.

    Of 41,319 problems of `bench adversary` (36 searches), the worst 300 were two far clusters with
    the costs 1 and 8, or 1, 199 and 200: 25 of them read all entries 1,293 times, and paths alone
    read them 137 times. Now they read them 461 times.
    """
    dear: float = 1.5
    """How many times as much readings of paths may count if these are to be taken for long.

    In squared distances on a line, columns move in the heap again and again, and all paths are long
    to the end. With 1.25, 1.5 and 1.7, `found` 9 (2,514 rows) takes 35, 34 and 88 ms. With 1.1 and
    1.5, 400 problems of `bench adversary` read all entries at most 5.8 and 2.5 times as often as
    paths alone.
    """
    long_share: float = 1.5
    """What these may read, as a multiple of what the auction has read.

    With 1 and 1.5, 400 problems of `bench adversary` read all entries 11,394 and 10,719 times.
    """
    a_bid: int = 32
    """Entries that a bid might read in the time that it takes besides those of its row.

    Bids take 2.2, 4, 5 and 7 ns an entry in rows of 64, 18, 14 and 11 entries.
    """
    a_row: int = 40
    """The same of a row that a search of paths scans, whose heap does not count."""
    a_push: int = 20
    """The same of a column that a search puts into the heap, and takes out or drops later.

    In squared distances on a line (64 and 18 entries a row), 0.37 and 0.35 columns for each entry
    that is read are put into the heap, and an entry takes 13 and 19 ns; in two far clusters
    (11 entries a row) 0.06 and 10 ns, and in random costs (17 entries a row) 0.05 and 5.5 ns.
    """
    usual: float = 2.0
    """How many times as long as a bid's an entry of paths takes in random costs."""
    searches: int = 2
    """Joint searches between a price war and the bids of the next phase.

    The first one matches the rows near unmatched columns, which would keep the second one from
    moving the prices of all others.
    """
    good_round: float = 1 / 4
    """The share of the roots that have paths in a good round of joint searches.

    After others, bids may serve better.
    """
    lenient: int = 16
    """Rounds of joint searches before those that are strict."""
    rounding: float = 2.0**-50
    """The share of costs and prices by which a float's pair may miss being tight."""

    # -- paths -------------------------------------------------------------------------------------

    watched: int = 8
    """How many times paths after the auction may be expected to read all entries.

    Otherwise a joint search or a finer epsilon serves rows for less.
    """
    two_sided_entries: int = 2**19
    """Entries from which on the last rows get paths from both ends, if all columns are matched.

    In smaller problems paths are short, and the first call would compile for half a second more.
    With 2**19 and 2**20, two far clusters of 80,000 rows (856,000 entries) read all entries 103 and
    113 times, and a mesh of 131,072 rows takes 235 and 276 ms.
    """
    two_sided_rows: int = 16
    """Rows that get paths from both ends.

    With 16, 32 and 64 rows, a mesh of 262,144 rows, whose auction leaves about 40 unmatched, takes
    213, 205 and 200 ms, and 244 instead of 188 ms without such paths.
    """
    two_sided_all: int = 64
    """If no more rows are unmatched, all of them get paths from both ends.

    A power-law matrix of 262,144 rows, whose auction leaves 200 unmatched, takes 256 and 262 ms
    with 16 and 64.
    """
    turn: int = 2**12
    """Entries of a turn of a forest, in paths from both ends."""
    turns_at_once: int = 2**9
    """Turns of a thread before the kernel returns to Python."""


DEFAULT = Tuning()
