"""Sparse matrices, costs and matchings from files and from the SuiteSparse Matrix Collection."""

from gpumatch.io.collection import manifest, suitesparse
from gpumatch.io.contents import MAX_BYTES
from gpumatch.io.files import read, read_costs
from gpumatch.io.labelled import LabelledArray
from gpumatch.io.matchings import read_matching, write_matching

__all__ = [
    "MAX_BYTES",
    "LabelledArray",
    "manifest",
    "read",
    "read_costs",
    "read_matching",
    "suitesparse",
    "write_matching",
]


def __dir__() -> list[str]:
    return __all__
