"""Sums and differences of floats with their rounding errors, and rounded down, inside kernels.

    two_sum(one, other)              the rounded sum, and its exact rounding error (Knuth)
    two_product(one, other)          the rounded product, and its exact rounding error (Dekker)
    lost(one, other, difference)     the exact rounding error of a rounded difference
    down(number, error)              a float below if the error is below 0, else the number
    difference_below(one, other)     the difference, rounded down

No number may be infinite, and no sum may overflow. A product may neither overflow nor be so small
that its error is no float, and its numbers must be below 2**990. The flags of a `vector_kernel`
leave the order of operations as it is, so the errors are exact there, too.
"""

from __future__ import annotations

from gpumatch.cpu.numba_tools.compiled import inlined

__all__ = ["difference_below", "down", "lost", "two_product", "two_sum"]

HALF = 2.0**-53 * (1 + 2.0**-52)
"""A little more than half of a unit in the last place, as a share of a number."""
LEAST = 2.0**-1074
SPLITTER = 2.0**27 + 1
"""It splits a float into two of 26 bits (Veltkamp)."""


@inlined
def two_sum(one, other):
    """Return the rounded sum, and its exact rounding error."""
    total = one + other
    part = total - one
    return total, (one - (total - part)) + (other - part)


@inlined
def two_product(one, other):
    """Return the rounded product, and its exact rounding error."""
    product = one * other
    wide, broad = SPLITTER * one, SPLITTER * other
    high, top = wide - (wide - one), broad - (broad - other)
    low, end = one - high, other - top
    return product, ((high * top - product) + high * end + low * top) + low * end


@inlined
def lost(one, other, difference):
    """Return the exact rounding error of ``difference``, which is one less other, rounded."""
    back = one - difference
    return (one - (difference + back)) + (back - other)


@inlined
def down(number, error):
    """Return a float below if ``error`` is below 0, else the number.

    It is the next one, but for numbers below 2**-967, where it may be the one after that (Rump,
    Zimmermann, Boldo and Melquiond, *Computing predecessor and successor in rounding to nearest*,
    BIT 49, 2009). `numpy.nextafter` is a call.
    """
    return number - (HALF * abs(number) + LEAST) if error < 0 else number


@inlined
def difference_below(one, other):
    """Return the difference of two floats, rounded down."""
    difference = one - other
    return down(difference, lost(one, other, difference))
