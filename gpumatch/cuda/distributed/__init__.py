"""The computations of a single rank for `gpumatch.distributed`, on its GPU."""
