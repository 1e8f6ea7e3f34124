"""Tables of costs: lines of equally many numbers."""

from __future__ import annotations

import numpy as np

from gpumatch.io.fields import ANYWHERE, Text, as_numbers, is_number, numbers, records, shortened

__all__ = ["parse_table"]


def parse_table(text: Text) -> np.ndarray:
    """The numbers, as integers if all are written so and fit 64 bits."""
    for dtype in (np.int64, np.uint64, np.float64):
        table = numbers(text, 0, dtype, ANYWHERE)
        if table is not None and table.size:
            return table
    lines: list[int] = []
    rows: list[list[str]] = []
    for number, fields in records(text, 0, ANYWHERE):
        for place, field in enumerate(fields, 1):
            if not is_number(field):
                what = f"line {number}, field {place}: {shortened(field)} is no number"
                has_header = not rows and not any(map(is_number, fields))
                raise ValueError(what + (_FOR_A_LIST if has_header else ""))
        if rows and len(fields) != len(rows[0]):
            width = len(rows[0])
            raise ValueError(
                f"line {number} has {len(fields)} fields, but line {lines[0]} has {width}"
            )
        lines.append(number)
        rows.append(fields)
    if not rows:
        raise ValueError("has no numbers")
    return as_numbers([field for row in rows for field in row]).reshape(len(rows), -1)


_FOR_A_LIST = (
    "; a list of rows, columns and costs has a header such as row,column,cost or source,target,cost"
)
