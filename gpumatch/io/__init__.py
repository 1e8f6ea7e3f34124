"""Sparse matrices, costs and matchings from files and from the SuiteSparse Matrix Collection."""

from gpumatch.io.collection import manifest, suitesparse
from gpumatch.io.files import MAX_BYTES, read, read_costs, read_matching, write_matching

__all__ = [
    "MAX_BYTES",
    "manifest",
    "read",
    "read_costs",
    "read_matching",
    "suitesparse",
    "write_matching",
]
