"""What the file of a proof holds: the parts of each problem, in the order of the text.

Each part has a form, which says how `gpumatch.certificates.proof_text` and
`gpumatch.certificates.proof_arrays` write it:

flag       True or False
word       a name
number     an int or a float
objective  the same, or None
limit      None, a number, or a number of each row
capacity   None, an integer, or an integer of each entry of the problem
ids        int64 array
numbers    int64 or float64 array
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["PARTS", "VERSIONS", "wide"]

_SENSE = {"maximize": "flag", "cardinality": "word"}
_TOTAL = {**_SENSE, "objective": "number", "gap": "number"}
_DUALS = {"row_dual": "numbers", "col_dual": "numbers"}
_MATES = {"row_to_col": "ids", "col_to_row": "ids"}
_COVER = {"cover_rows": "ids", "cover_cols": "ids"}

PARTS: dict[str, dict[str, str]] = {
    "matching": {**_MATES, **_COVER},
    "assignment": {**_TOTAL, "cost_limit": "limit", **_DUALS, **_MATES, **_COVER},
    "bottleneck": {
        **_SENSE,
        "objective": "objective",
        **_MATES,
        **_COVER,
        "threshold_rows": "ids",
        "threshold_cols": "ids",
    },
    "transport": {
        **_TOTAL,
        "cost_limit": "limit",
        "unit": "number",
        "pair_capacity": "capacity",
        "row_lower": "ids",
        "row_upper": "ids",
        "col_lower": "ids",
        "col_upper": "ids",
        **_DUALS,
        "row_ind": "ids",
        "col_ind": "ids",
        "flow_units": "ids",
        **_COVER,
    },
    "general-matching": {"mate": "ids", "tutte_berge": "ids"},
    "general-weights": {
        **_TOTAL,
        "dual_scale": "number",
        "mate": "ids",
        "vertex_dual": "numbers",
        "set_vertices": "ids",
        "set_begin": "ids",
        "set_end": "ids",
        "set_dual": "numbers",
    },
}
"""The form of each part, by problem and name."""

VERSIONS = {problem: 1 if problem in ("matching", "assignment") else 2 for problem in PARTS}
"""The version that brought the proofs of each problem, in which they are written."""


def wide(numbers: Any) -> np.ndarray:
    """Numbers as int64 or float64."""
    return np.asarray(numbers, np.int64 if numbers.dtype.kind in "iub" else np.float64)
