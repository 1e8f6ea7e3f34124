"""Live problems on the CPU: an optimum that is kept while its problem changes.

| problem | files |
| --- | --- |
| assignment, a matrix | `tables`; its kernels are `changes` and `search` |
| assignment, sparse costs | `sparse_table`; its kernels are `cells` |
| assignment, points | `point_table`; its kernels are `near` and `boxes` |
| maximum matching | `graph` |

`state` says what is kept of an assignment, and what holds of it. `calls` makes calls short.
"""
