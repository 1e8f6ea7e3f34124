"""Linear assignment on the CPU.

Each file of this folder is an algorithm that a caller can name, and so are `dgs` and `hungarian`.
The other rooms serve them. `auto` picks as follows:

| call | costs | file |
| --- | --- | --- |
| `linear_sum_assignment` | dense, up to 2**18 integers or 2**20 floats | `small.pairs_only` |
| `linear_sum_assignment` with a limit | dense floats, up to 2**20; many at once | `small.gated` |
| `assign` | dense, up to 2**16, no algorithm or callback given | `small.batch` |
| `assign` | dense, up to 2**17, or integers beyond float64 | `shortest_augmenting_path` |
| `assign` | dense, more | `dense.engine` |
| `assign` | computed, up to 2**20, or with forbidden pairs | as dense, in a matrix |
| `assign` | computed, more: points and functions | `points.engine` |
| `assign`, `csgraph` | sparse, full, up to 2**19 entries; if square, 2**17 | `sparse.small` |
| `assign` | sparse, any other, or if paths are long | `sparse.engine` |
| `assign`, a batch | dense or points, up to 2**18 each; larger ones as `assign` | `small.batch` |
| `assign`, bottleneck | sparse, full; else by maximum matchings | `bottleneck` |
| `maximum_product_matching` | small and square | `sparse.small_product` |
| `maximum_product_matching` | any other | `sparse.product` |

`engine` chooses among the fourth to the sixth line.
What the duals of a result do not prove, `either.finish` ends exactly. `either.at_limit` then joins
unmatched rows and columns whose pair costs exactly the limit.
"""
