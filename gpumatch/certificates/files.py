"""Proofs that travel: a result, what proves it, and a hash of its problem, in one file.

A file is ``.npz``, or text (``.txt``) that people and the second checker read, which is in C
(``standalone/check.c``). Both hold the same. docs/algorithms/proof_files.md states the format, what
a reader must check, and why that proves the result. What is added has a version of its own, and all
stay readable.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from gpumatch.certificates.proof_arrays import read_arrays, write_arrays
from gpumatch.certificates.proof_claims import record_of
from gpumatch.certificates.proof_text import lines_of, read_text
from gpumatch.certificates.proofs import Proof, proof_from

__all__ = ["Proof", "load", "save"]

MAX_BYTES = 2**34
"""The largest text, and the largest sum of the arrays of an ``.npz``, that is read."""


def save(
    file: str | os.PathLike[str],
    A: Any,
    result: Any,
    *,
    sizes: Any = None,
    weight: Hashable = "weight",
    triangle: str = "both",
) -> None:
    """Write a result with its proof, and a hash of its problem.

    Parameters
    ----------
    file : path
        It ends in ``.npz`` or ``.txt``.
    A : the graph or the costs
        What the result is one of. Costs are stored ones, or those of `PointCosts` of a named
        metric.
    result : Matching, Assignment, BottleneckAssignment, LexicographicAssignment, Transport, \
            GeneralMatching, GeneralWeightMatching, RankedAssignments, Alternatives, \
            MatchingEdges, or a batch of assignments, flows or rankings
        A proven one; the k cheapest with their tree (``proof=True``).
    sizes : (rows, cols), optional
        Of a batch in a padded array; see `gpumatch.verify`.
    weight, triangle
        Of a graph, as they were chosen; see `gpumatch.verify`.

    Raises
    ------
    ValueError
        If the name ends otherwise, or the result is not proven.
    TypeError
        If there is no such file for the result or for the costs.

    Examples
    --------
    >>> import os, tempfile, numpy as np, gpumatch as gm
    >>> from gpumatch import certificates
    >>> C = np.array([[4, 1, 3], [2, 0, 5], [3, 2, 2]])
    >>> file = os.path.join(tempfile.mkdtemp(), "proof.txt")
    >>> certificates.save(file, C, gm.assign(C))
    >>> print(certificates.check(file, C))
    optimal: 3 pairs of total 5, and dual prices of total 5, checked on 9 pairs; the gap is 0
    """
    path = Path(file)
    suffix = _suffix(path)
    record = record_of(A, result, sizes, weight, triangle)
    if suffix == ".npz":
        write_arrays(path, record)
        return
    with open(path, "w", encoding="ascii", newline="\n") as out:
        out.writelines(lines_of(record))


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (".npz", ".txt"):
        raise ValueError(f"{path}: a file of a proof ends in .npz or .txt")
    return suffix


def load(file: str | os.PathLike[str]) -> Proof:
    """Read a proof; `check` compares it with its problem.

    Parameters
    ----------
    file : path
        What `save` has written.

    Returns
    -------
    Proof

    Raises
    ------
    ValueError
        If the file is no proof of a known version, or is larger than 2**34 bytes.
    OSError
        If it cannot be read.
    """
    path = Path(file)
    read = read_text if _suffix(path) == ".txt" else read_arrays
    try:
        return proof_from(read(path, MAX_BYTES))
    except Exception as error:  # broken archives raise anything from EOFError to zlib.error
        if isinstance(error, OSError) and error.errno is not None:
            raise
        message = str(error) or type(error).__name__
        raise ValueError(message if str(path) in message else f"{path}: {message}") from error
