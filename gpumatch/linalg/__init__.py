"""What solvers of sparse linear systems ask of a matrix's pattern, by matching.

    dmperm      the Dulmage–Mendelsohn decomposition of any pattern, coarse and fine
    btf         the block triangular form of a square pattern
    strongcomp  the strong components of a square pattern as it is, or with its columns permuted
    maxtrans    a maximum transversal: the column of each row
    sprank      the structural rank

Names are those of MATLAB, CSparse and scikit-sparse. Indices count from 0. Stored entries count,
stored zeros too, and values are not looked at.
"""

from __future__ import annotations

from gpumatch.linalg.block_triangular import BlockTriangularForm, btf, strongcomp
from gpumatch.linalg.dulmage_mendelsohn import DulmageMendelsohn, dmperm
from gpumatch.linalg.transversal import maxtrans, sprank

__all__ = [
    "BlockTriangularForm",
    "DulmageMendelsohn",
    "btf",
    "dmperm",
    "maxtrans",
    "sprank",
    "strongcomp",
]
