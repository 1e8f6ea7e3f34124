"""The changes of a live dense table, and what becomes of its pairs and duals.

A change writes costs, and makes duals that no pair undercuts. If a pair stays tight, nothing else
happens. Otherwise its vertices wait until `serve` finds their paths. `state` names the arrays.

Each entry point gets the arrays of the vertex's own side first: ``own, other, nums, nums2, marks,
marks2``. ``mode`` is BY_LIMIT, or BY_COVER without a limit; AT_LIMIT if a pair at the limit is to
be made, too.
"""

from __future__ import annotations

import numpy as np

from gpumatch.cpu.assignment.small.proof import add_up, is_within
from gpumatch.cpu.live.search import (
    dual_below,
    hide_bound,
    release,
    serve_side,
    set_dual,
    show_bound,
    wait,
)
from gpumatch.cpu.live.state import (
    BACK,
    BOUND,
    COUNTS,
    DUAL,
    FREE,
    LARGEST,
    LINE,
    LIVE,
    MATE,
    PARTNER,
    PRED,
    SCALARS,
    SLOTS,
    TOP,
    TREE,
    USED,
    WAITING,
    WAITS,
)
from gpumatch.cpu.numba_tools.compiled import inlined, short_kernel, strict_kernel, vector_kernel
from gpumatch.cpu.numba_tools.error_free import difference_below, two_sum
from gpumatch.cpu.numba_tools.vector_min import greater, lesser
from gpumatch.cpu.numba_tools.views import as_integers

__all__ = [
    "AT_LIMIT",
    "BY_COVER",
    "BY_LIMIT",
    "DRIFT",
    "FIT",
    "INVALID",
    "TOO_LARGE",
    "checked",
    "note_largest",
    "part",
    "remove_line",
    "report",
    "serve",
    "set_cost",
    "set_line",
    "total_of",
]

BY_COVER, BY_LIMIT, AT_LIMIT = range(3)
FIT, INVALID, TOO_LARGE = range(3)
"""What becomes of a change: NaN and an infinity of the wrong sign are INVALID."""
DRIFT = 2.0**51
"""A magnitude of duals from which on integers would be no longer exact."""


@short_kernel
def set_line(own, other, nums, nums2, marks, marks2, sign, most, mode, x, values, limit):
    """Give a vertex new costs, in the order of the other side's slots in use; return if they fit.

    A vertex whose slot is the first that was never in use is new.
    """
    fit = _take_line(nums2, marks2, values, sign, limit, most)
    if fit != FIT:
        return fit
    if x == marks[COUNTS, SLOTS]:
        marks[COUNTS, SLOTS] += 1
        marks[COUNTS, LIVE] += 1
        marks[USED, x], marks[FREE, x], marks[WAITS, x] = 1, 1, 0
        marks[MATE, x] = -1 - x
    for k in range(marks2[COUNTS, SLOTS]):
        own[x, k] = nums2[LINE, k]
        other[k, x] = nums2[LINE, k]
    _refresh(own, nums, nums2, marks, marks2, x, mode)
    return FIT


@inlined
def _take_line(nums, marks, values, sign, limit, most):
    """Write the costs to be minimised into a line, with inf for forbidden pairs; return if all fit.

    No magnitude may be above ``limit``. Pairs above ``most`` are forbidden.
    """
    if marks[COUNTS, LIVE] == marks[COUNTS, SLOTS] and _copy_line(nums, values, sign, limit, most):
        return FIT
    return _check_line(nums, marks, values, sign, limit, most)


@strict_kernel  # else the caller's is inherited, and NaN passes
def _copy_line(nums, values, sign, limit, most):
    """Write the line if every slot is in use; return if all costs are finite and fit."""
    largest, fits = 0.0, True
    for k in range(values.size):
        cost = sign * values[k]
        size = abs(cost)
        fits &= size <= limit
        largest = size if size > largest else largest
        nums[LINE, k] = cost if cost <= most else np.inf
    if fits:
        nums[SCALARS, LARGEST] = max(nums[SCALARS, LARGEST], largest)
    return fits


@strict_kernel
def _check_line(nums, marks, values, sign, limit, most):
    """Write the line of slots of which some are not in use, or with costs that may not fit."""
    fit, place, largest = FIT, 0, nums[SCALARS, LARGEST]
    for k in range(marks[COUNTS, SLOTS]):
        cost = np.inf
        if marks[USED, k] == 1:
            cost = sign * values[place]
            place += 1
            if abs(cost) <= limit:
                largest = max(largest, abs(cost))
            elif cost != np.inf:
                fit = TOO_LARGE if abs(cost) < np.inf and fit == FIT else INVALID
            cost = cost if cost <= most else np.inf
        nums[LINE, k] = cost
    if fit == FIT:
        nums[SCALARS, LARGEST] = largest
    return fit


@short_kernel
def set_cost(own, other, nums, nums2, marks, marks2, sign, most, mode, x, k, cost, limit):
    """Give a pair another cost; return if it fits."""
    fit, value = checked(cost, sign, limit, most)
    if fit != FIT:
        return fit
    note_largest(nums2, cost)
    cost = value
    own[x, k] = other[k, x] = cost
    if marks[MATE, x] == k:
        _refresh(own, nums, nums2, marks, marks2, x, mode)
    elif cost < np.inf and marks[FREE, x] + marks2[FREE, k] > 0:
        is_new = mode == BY_COVER and marks[FREE, x] + marks2[FREE, k] == 2
        if is_new or difference_below(cost, nums2[DUAL, k]) < nums[DUAL, x]:
            _refresh(own, nums, nums2, marks, marks2, x, mode)
        elif mode == AT_LIMIT and marks[MATE, x] < 0 and marks2[MATE, k] < 0:
            wait(marks, x)
    return FIT


@strict_kernel
def checked(cost, sign, limit, most):
    """Return if a cost fits, and the cost to be minimised: inf above ``most``."""
    cost *= sign
    if not abs(cost) <= limit and cost != np.inf:
        return TOO_LARGE if abs(cost) < np.inf else INVALID, cost
    return FIT, cost if cost <= most else np.inf


@strict_kernel
def note_largest(nums, cost):
    """Note the magnitude of a cost that fits."""
    if abs(cost) < np.inf:
        nums[SCALARS, LARGEST] = max(nums[SCALARS, LARGEST], abs(cost))


@short_kernel
def remove_line(own, other, nums, nums2, marks, marks2, x):
    """Remove a vertex."""
    if marks[MATE, x] >= 0:
        part(marks, marks2, x)
    marks[COUNTS, LIVE] -= 1
    marks[COUNTS, BOUND] -= 1 - marks[FREE, x]
    marks[USED, x], marks[FREE, x], marks[WAITS, x], marks[PARTNER, x] = 0, 1, 0, -1
    set_dual(nums, x, 0.0)
    for k in range(marks2[COUNTS, SLOTS]):
        own[x, k] = other[k, x] = np.inf


@inlined
def part(marks, marks2, x):
    """Part a pair. The mate waits."""
    k = marks[MATE, x]
    marks[MATE, x], marks2[MATE, k] = -1 - x, -1 - k
    marks[PARTNER, x] = k
    wait(marks2, k)


@vector_kernel
def _refresh(own, nums, nums2, marks, marks2, x, mode):
    """Make the dual of a vertex with new costs fair, and part it from its mate if that is slack."""
    count = marks2[COUNTS, SLOTS]
    is_free = np.int32(1)
    if mode == BY_COVER:
        hides = marks2[COUNTS, BOUND] > 0
        hide_bound(nums2, marks2, hides)
        dual = dual_below(own, nums2, x, count, False)
        show_bound(nums2, marks2, hides)
        is_free = np.int32(1 if dual == np.inf else 0)
        if is_free == 1 and hides:
            dual = dual_below(own, nums2, x, count, False)
    else:
        dual = dual_below(own, nums2, x, count, False)
    if is_free == 1:
        dual = lesser(dual, nums[SCALARS, TOP])
    set_dual(nums, x, dual)
    k = marks[MATE, x]
    stays = k >= 0 and own[x, k] < np.inf and is_free == marks[FREE, x]
    if stays and difference_below(own[x, k], nums2[DUAL, k]) <= dual:
        return
    marks[COUNTS, BOUND] += marks[FREE, x] - is_free
    marks[FREE, x] = is_free
    if k >= 0:
        part(marks, marks2, x)
    wait(marks, x)


@short_kernel
def serve(own, other, nums, nums2, marks, marks2, mode, is_exact, budget):
    """Serve all that wait, until so many entries are read; return how many may wait still."""
    joins = mode == AT_LIMIT
    read = 0
    while read < budget and marks[COUNTS, WAITING] + marks2[COUNTS, WAITING] > 0:
        read += 1 + serve_side(
            own, other, nums, nums2, marks, marks2, joins, is_exact, budget - read
        )  # fmt: skip
        read += serve_side(other, own, nums2, nums, marks2, marks, joins, is_exact, budget - read)
    return marks[COUNTS, WAITING] + marks2[COUNTS, WAITING]


@short_kernel
def total_of(own, other, nums, nums2, marks, marks2, sign, mode, is_exact, is_full, budget):
    """Serve those that wait, and return what all pairs cost.

    Infinity says that this takes more: the budget is used up, pairs are missing, or `report` must
    look: integers are large, or floats, by their rounded sum, leave more than a proof may have.
    """
    if serve(own, other, nums, nums2, marks, marks2, mode, is_exact, budget) > 0:
        return np.inf
    size, total, rest, largest, gap = 0, 0.0, 0.0, 0.0, 0.0
    used = abs(nums[SCALARS, TOP])
    for x in range(marks[COUNTS, SLOTS]):
        k, dual = marks[MATE, x], nums[DUAL, x]
        largest = greater(largest, abs(dual))
        if k >= 0:
            size += 1
            total, error = two_sum(total, sign * own[x, k])
            rest += error
            used = greater(used, abs(own[x, k]))
            gap += (own[x, k] - nums2[DUAL, k]) - dual
        elif marks[USED, x] == 1:
            gap += nums[SCALARS, TOP] - dual
    for k in range(marks2[COUNTS, SLOTS]):
        largest = greater(largest, abs(nums2[DUAL, k]))
        if marks2[MATE, k] < 0 and marks2[USED, k] == 1:
            gap += nums2[SCALARS, TOP] - nums2[DUAL, k]
    lacks_pairs = is_full and size < min(marks[COUNTS, LIVE], marks2[COUNTS, LIVE])
    is_large = is_exact and (largest >= DRIFT or rest != 0.0 or abs(total) >= DRIFT)
    is_large |= not (is_exact or is_within(greater(gap, 0.0), size, total, used, largest))
    return np.inf if lacks_pairs or is_large else total + rest


@short_kernel
def report(
    own, other, nums, nums2, marks, marks2, sign, mode, is_exact, is_full, mates, numbers, totals
):  # fmt: skip
    """Write the pairs and their proof: of rows and columns in use, in the order of their slots.

    ``mates`` gets those of the rows and those of the columns; ``numbers`` the duals of both, and
    the cost of each matched row; if ``is_exact``, as int64. ``totals`` gets the number of pairs,
    their cost as a sum of two floats, and the gap, or -1 if that is too large for a proof.
    """
    rows = _places(marks)
    cols = _places(marks2)
    if is_full and rows <= cols:
        _bind_all(other, nums2, nums, marks2, marks)
    elif is_full:
        _bind_all(own, nums, nums2, marks, marks2)
    base = 0.0 if mode == BY_COVER else nums[SCALARS, TOP]
    largest = 0.0
    for x in range(marks[COUNTS, SLOTS]):
        if marks[USED, x] == 1:
            place, k = marks[PRED, x], marks[MATE, x]
            mates[place] = marks2[PRED, k] if k >= 0 else -1
            numbers[place] = difference_below(nums[DUAL, x], base)
            numbers[rows + cols + place] = sign * own[x, k] if k >= 0 else 0.0
            largest = greater(largest, abs(nums[DUAL, x]))
    for k in range(marks2[COUNTS, SLOTS]):
        if marks2[USED, k] == 1:
            place, x = marks2[PRED, k], marks2[MATE, k]
            mates[rows + place] = marks[PRED, x] if x >= 0 else -1
            numbers[rows + place] = nums2[DUAL, k]
            largest = greater(largest, abs(nums2[DUAL, k]))
    size, total, rest, gap, is_proven = add_up(
        sign, np.inf if mode == BY_COVER else base, mates, numbers, numbers[rows + cols :],
        rows, rows, cols, is_exact,
    )  # fmt: skip
    is_proven &= largest < DRIFT if is_exact else True
    totals[0], totals[1], totals[2], totals[3] = size, total, rest, gap if is_proven else -1.0
    for place in range(rows + cols):
        numbers[place] *= sign
    if is_exact:
        for place in range(numbers.size):
            as_integers(numbers)[place] = np.int64(numbers[place])


@inlined
def _places(marks):
    """Number the slots in use; return how many there are."""
    place = 0
    for x in range(marks[COUNTS, SLOTS]):
        marks[PRED, x] = place
        place += marks[USED, x]
    return place


@vector_kernel
def _bind_all(costs, nums, nums2, marks, marks2):
    """Bind all vertices of the other side if all of them are matched, so that these are free."""
    size = 0
    for x in range(marks[COUNTS, SLOTS]):
        if marks[FREE, x] == 0:
            marks2[BACK, size] = x
            marks2[TREE, size] = marks[MATE, x]
            size += 1
    for k in range(marks2[COUNTS, SLOTS]):
        if marks2[USED, k] == 1 and marks2[MATE, k] < 0:
            return
    if size > 0:
        release(costs, nums, nums2, marks, marks2, size, size)
