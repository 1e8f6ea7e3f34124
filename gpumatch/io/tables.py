"""Tables of costs: lines of equally many numbers."""

from __future__ import annotations

import numpy as np

from gpumatch.io.fields import ANYWHERE, Text, as_numbers, is_number, numbers, records, shortened

__all__ = ["parse_table"]


def parse_table(text: Text) -> np.ndarray:
    """The numbers, as integers if all are written so and fit 64 bits."""
    table = numbers(text, 0, [np.int64, np.uint64, np.float64], ANYWHERE)
    if table is not None and table.size:
        return table
    lines, columns = records(text, 0, ANYWHERE)
    if not lines:
        raise ValueError("has no numbers")
    fields = [field for row in zip(*columns) for field in row]
    found = as_numbers(fields)
    if found is not None:
        return found.reshape(len(lines), len(columns))
    at = next(at for at, field in enumerate(fields) if not is_number(field))
    row, place = divmod(at, len(columns))
    has_header = row == 0 and not any(map(is_number, fields[: len(columns)]))
    raise ValueError(
        f"line {lines[row]}, field {place + 1}: {shortened(fields[at])} is no number"
        + (_FOR_A_LIST if has_header else "")
    )


_FOR_A_LIST = (
    "; a list of rows, columns and costs has a header such as row,column,cost or source,target,cost"
)
