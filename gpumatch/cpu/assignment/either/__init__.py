"""What serves costs of either form, a matrix or CSR: by kernels for both, or by the engine of one.

- `entries`: kernels that go by the form of their argument.
- `paths`: the paths of a problem, dense or sparse.
- `fair_duals`: the duals of rows that go with given prices.
- `finish`: exact paths from an assignment whose duals leave a gap.
- `at_limit`: unmatched rows and columns whose pair costs exactly the limit.
"""
