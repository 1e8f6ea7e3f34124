"""The numbers that tune teams (`batch`): `DEFAULT`, unless a caller passes others.

No result depends on them, only time. Of a pair of numbers, the first is for batches and the second
for a problem that is alone on the device, if nothing else is said.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT", "Tuning"]


@dataclass(frozen=True)
class Tuning:
    """What teams decide by; each field says its unit, and where it was measured."""

    # -- the threads of a team ---------------------------------------------------------------------

    of_a_warp: int = 64
    """Columns up to which a warp solves a problem."""
    of_a_block: tuple[int, int] = 512, 256
    """Columns up to which a single block solves a problem."""
    wide: int = 2
    """The columns for each row from which on a block has more threads than columns.

    Such a problem has few searches, and reading its rows takes most of the time. With 512 threads
    for up to 128 rows, else 1,024, 208 problems take 0.85 of the time. 1,000 problems of 100 rows
    and 120 columns would take 1.7 times as long, because fewer fit on the device at once.
    """
    few_rows: int = 128
    """Rows up to which such a block has `readers` threads, and bids end with fewer bidders."""
    readers: int = 512
    """Threads of such a block."""
    least_threads: int = 128
    """The least number of threads of a cluster's block for a single problem.

    Its warps all bid at once. On an H200, uniform float32 costs take 0.44 ms in 300 rows, 0.92 in
    512 and 1.52 in 700, where as many threads as columns took 0.51, 0.97 and 1.61. Integers up to n
    take 1.14 instead of 1.05 in 400 rows, but 0.62 instead of 0.67 in 300.
    """
    small_cluster: tuple[int, int] = 4, 256
    """Blocks, and threads of each, of a single problem in which messages to more take longer."""
    of_a_small_cluster: int = 512
    """Columns up to which a cluster is small."""
    most_parts: int = 16
    """The most blocks that transpose a problem."""

    # -- bids --------------------------------------------------------------------------------------

    bids: tuple[int, int] = 2, 4
    """Mean bids of a row after its first.

    In batches, 4 are slower on points in the plane, and 0 on uniform costs. A single problem has
    the device to itself: in a model of the kernel, uniform costs take 0.7 to 0.8 of the time with
    4, and points 0.8 to 1.
    """
    fewest_bidders: tuple[int, int] = 4, 8
    """Unmatched rows at which bids end: in problems of few rows, and of more.

    With 8 instead of 4, 208 problems of 100 rows and 300 columns take 2 to 10 % longer. With 4
    instead of 8, points in 300 rows and 600 columns take 14 % longer.
    """

    # -- searches ----------------------------------------------------------------------------------

    rows_at_once: tuple[int, int] = 8, 12
    """The most rows of a step of a search.

    In batches, points take up to 40 % longer with 16. Alone on an H200, uniform costs in 1,000 rows
    take 2.62, 2.52 and 2.45 ms with 8, 12 and 16, and points in 512 rows 4.3, 4.3 and 4.5.
    """
    steps_a_row: tuple[int, int] = 4, 16
    """Auctions are held if the other paths are expected to take more steps for each row.

    The first number is the general one. The second holds if a fourth of the rows to half of them
    are unmatched after the first bids (fewer, too, with fewer than 256 rows). On an H200, 256
    problems of rank 3 in 512 rows take 8 ms with 4, and 60 with 10; two clusters 19 and 31; points
    on a line and others twice as far apart 67 with 16, and 80 with 10. In 100 rows, two clusters
    take 1.8 with 4, and 1.4 without auctions.
    """
    steps_before_a_guess: int = 64
    """Steps of the searches before a team estimates the others."""
    together: int = 3000
    """Columns from which on problems that teams give up are solved together."""
    steps_of_core: int = 5000
    """The steps of a team in the time that a core for all problems takes in any case: 12 ms."""
    steps_of_its_rows: float = 0.45
    """The steps of a team in the time of such a core for each row: 1.1 ms for 1,000 rows."""
    steps_before_its_guess: int = 512
    """Steps before a team estimates the others of a problem that it may give up to a core."""


DEFAULT = Tuning()
