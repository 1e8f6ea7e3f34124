"""What solvers of sparse linear systems ask of a matrix before they factor it, by matching.

Of its pattern, in which stored zeros are entries, too:

    dmperm      the Dulmage–Mendelsohn decomposition of any pattern, coarse and fine
    btf         the block triangular form of a square pattern
    strongcomp  the strong components of a square pattern as it is, or with its columns permuted
    maxtrans    a maximum transversal: the column of each row
    sprank      the structural rank

Of its values, where zeros are no entries:

    maximum_product_matching  large entries to the diagonal, and a scaling that makes them 1
    mc64                      the same and MC64's other jobs, by their numbers
    splu, factorized          SuperLU, after these
    cudss                     cuDSS on a GPU, after these
    solve_btf                 SuperLU for each block of the block triangular form

Names are those of MATLAB, CSparse, scikit-sparse and HSL. Indices count from 0.
"""

from __future__ import annotations

from gpumatch.linalg.block_solve import solve_btf
from gpumatch.linalg.block_triangular import BlockTriangularForm, btf, strongcomp
from gpumatch.linalg.cudss import CuDSS, cudss
from gpumatch.linalg.dulmage_mendelsohn import DulmageMendelsohn, dmperm
from gpumatch.linalg.lu import LU, SingularMatrixError, factorized, splu
from gpumatch.linalg.mc64 import MC64, mc64
from gpumatch.linalg.product_matching import ProductMatching, maximum_product_matching
from gpumatch.linalg.transversal import maxtrans, sprank

__all__ = [
    "LU",
    "MC64",
    "BlockTriangularForm",
    "CuDSS",
    "DulmageMendelsohn",
    "ProductMatching",
    "SingularMatrixError",
    "btf",
    "cudss",
    "dmperm",
    "factorized",
    "maximum_product_matching",
    "maxtrans",
    "mc64",
    "solve_btf",
    "splu",
    "sprank",
    "strongcomp",
]


def __dir__() -> list[str]:
    return __all__
