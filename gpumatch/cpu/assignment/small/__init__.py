"""Small dense costs on the CPU, one or many, each in one compiled call.

`batch` divides problems among threads, and `with_duals` solves a range of them by the paths of
`search`, or `under_limits`, where rows bid first (`bids`). `whole` finds floats whose sums are
exact. `proof` tells what their duals prove; `sparse.small` uses it, too. `pairs_only` and
`scipy_order` find pairs without duals. `gated` finds those under a limit, and `frames` those of
many matrices; `mates` says what pairs cost. `warm` begins from other pairs and prices.
"""
