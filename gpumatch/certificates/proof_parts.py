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
order      None, or an int64 array
numbers    int64 or float64 array
proofs     a list of records, those of the problems of a batch
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "PARTS",
    "STORED",
    "VERSIONS",
    "Record",
    "check_batch",
    "check_version",
    "version_of",
    "wide",
]

STORED = "stored"
"""The word for costs that are stored. That of distances is their metric."""


class Record(NamedTuple):
    """What the file of a proof holds."""

    problem: str
    costs: str
    shape: tuple[int, int]
    sha256: str
    parts: dict[str, Any]


_SENSE = {"maximize": "flag", "cardinality": "word"}
_TOTAL = {**_SENSE, "objective": "number", "gap": "number"}
_DUALS = {"row_dual": "numbers", "col_dual": "numbers"}
_MATES = {"row_to_col": "ids", "col_to_row": "ids"}
_COVER = {"cover_rows": "ids", "cover_cols": "ids"}

_ASSIGNMENT = {**_TOTAL, "cost_limit": "limit", **_DUALS, **_MATES, **_COVER}
_ENTRIES = {"is_unique": "flag", "indptr": "ids", "indices": "ids"}

PARTS: dict[str, dict[str, str]] = {
    "matching": {**_MATES, **_COVER},
    "assignment": _ASSIGNMENT,
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
    "ranking": {
        "maximize": "flag",
        "cost_limit": "limit",
        "is_complete": "flag",
        "objective": "numbers",
        "row_to_col": "ids",
        "by_columns": "flag",
        "parent": "ids",
        "place": "ids",
        "opened": "ids",
        "order": "ids",
        "is_empty": "ids",
        "starts": "ids",
        "vertices": "ids",
        "differences": "numbers",
    },
    "lexicographic": {
        "maximize": "flag",
        "objective": "objective",
        **_MATES,
        "level_value": "numbers",
        "level_starts": "ids",
        "level_vertices": "ids",
        "level_dual": "ids",
    },
    "alternatives": {
        **_ASSIGNMENT,
        "within": "number",
        "tolerance": "number",
        **_ENTRIES,
        "extra": "numbers",
        "row_block": "order",
        "col_block": "order",
    },
    "edges": {
        "forced": "flag",
        **_ENTRIES,
        "row_to_col": "ids",
        "row_block": "ids",
        "col_block": "ids",
        "last_block": "number",
    },
    "batch": {"problems": "proofs"},
}
"""The form of each part, by problem and name."""

BATCHED = {"assignment", "transport", "ranking"}
"""The problems of which there are batches."""

VERSIONS = 1, 2, 3
_FIRST = {
    **dict.fromkeys(("matching", "assignment"), 1),
    **dict.fromkeys(("bottleneck", "transport", "general-matching", "general-weights"), 2),
}
"""The version of each problem of stored costs that is older than the last one."""


def version_of(problem: str, costs: str) -> int:
    """The version that brought the proofs of a problem, in which they are written."""
    return _FIRST.get(problem, VERSIONS[-1]) if costs == STORED else VERSIONS[-1]


def check_version(version: int, problem: str, costs: str) -> None:
    """Raise ValueError unless proofs of this problem are written in this version."""
    if version not in VERSIONS:
        raise ValueError(f"version {version} is not known; these are 1, 2 and 3")
    if problem not in PARTS or version != version_of(problem, costs):
        of_what = "" if costs == STORED else f" of costs {costs[:40]}"
        raise ValueError(f"there is no problem {problem[:40]}{of_what} in version {version}")


def check_batch(records: list[Record]) -> None:
    """Raise ValueError unless these are proofs of one kind, of which there are batches."""
    problems = {record.problem for record in records}
    if len(problems) > 1:
        raise ValueError(f"a batch has proofs of several kinds: {', '.join(sorted(problems))}")
    for problem in problems - BATCHED:
        raise ValueError(f"there are no batches of problem {problem}")


def wide(numbers: Any) -> np.ndarray:
    """Numbers as int64 or float64."""
    return np.asarray(numbers, np.int64 if numbers.dtype.kind in "iub" else np.float64)
