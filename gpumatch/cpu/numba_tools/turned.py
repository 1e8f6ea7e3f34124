"""The transpose of a matrix, by blocks that stay in registers.

    turn(values, table)  table[j, i] = values[i, j]; ``values`` may be a borrowed array with strides

LLVM makes no vector instructions of this loop, and moves one number at a time. A block of SIDE rows
and columns takes SIDE loads, two steps in which rows exchange halves, and SIDE stores, which is
three times as fast.

This depends on private parts of Numba (`private.arrays`), as `views` does. Where they do not work,
it is a loop.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import TypingError, types
from numba.extending import intrinsic as _intrinsic

from gpumatch.cpu.numba_tools.compiled import strict_kernel
from gpumatch.cpu.numba_tools.private import arrays
from gpumatch.cpu.numba_tools.views import ARE_PLAIN

__all__ = ["SIDE", "turn"]

SIDE = 4

intrinsic: Any = _intrinsic
_INT = ir.IntType(32)


@strict_kernel
def turn(values, table):
    """Write the transpose of a C-contiguous matrix to a table of its own memory."""
    rows, cols = values.shape
    whole_rows, whole_cols = (0, 0) if ARE_PLAIN else (rows - rows % SIDE, cols - cols % SIDE)
    for row in range(0, whole_rows, SIDE):
        for col in range(0, whole_cols, SIDE):
            _turn_block(values, table, row, col)
        for col in range(whole_cols, cols):
            for k in range(row, row + SIDE):
                table[col, k] = values[k, col]
    for row in range(whole_rows, rows):
        for col in range(cols):
            table[col, row] = values[row, col]


@intrinsic
def _turn_block(typingctx: Any, values: Any, table: Any, row: Any, col: Any) -> Any:
    """Write the transpose of the block that begins at a row and a column."""
    if not all(isinstance(one, types.Array) and one.layout == "C" for one in (values, table)):
        raise TypingError(f"needs C-contiguous matrices, got {values} and {table}")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds, (_, _, row, col) = signature.args, args
        source, target = (
            context.make_array(kind)(context, builder, array)
            for kind, array in zip(kinds[:2], args[:2])
        )
        block = ir.VectorType(source.data.type.pointee, SIDE)

        def place(kind: Any, array: Any, at: Any) -> Any:
            item = arrays.get_item_pointer(context, builder, kind, array, at, wraparound=False)
            return builder.bitcast(item, block.as_pointer())

        align = context.get_abi_sizeof(context.get_data_type(values.dtype))
        numbers = [row.type(k) for k in range(SIDE)]
        lines = [
            builder.load(place(values, source, (builder.add(row, k), col)), align=align)
            for k in numbers
        ]
        for k, line in zip(numbers, _exchanged(builder, lines)):
            builder.store(line, place(table, target, (builder.add(col, k), row)), align=align)
        return context.get_dummy_value()

    return types.void(values, table, types.intp, types.intp), generate


def _exchanged(builder: Any, lines: list[Any]) -> list[Any]:
    """The lines of the transposed block: line i exchanges with i + step what they have swapped."""
    step = 1
    while step < SIDE:
        before, lines = lines, [None] * SIDE
        for i in range(SIDE):
            if i & step:
                continue
            one, other = before[i], before[i + step]
            upper = [k if not k & step else SIDE + k - step for k in range(SIDE)]
            lower = [k + step if not k & step else SIDE + k for k in range(SIDE)]
            for at, picks in ((i, upper), (i + step, lower)):
                mask = ir.Constant(ir.VectorType(_INT, SIDE), picks)
                lines[at] = builder.shuffle_vector(one, other, mask)
        step *= 2
    return lines
