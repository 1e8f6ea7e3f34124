"""Dense costs on the CPU.

`engine` is the default. It tries `ties` and whole lines first (`paths`, kernels in `search`), and
what `candidates` a row knows after that: bids by these are in `candidate_bids`, searches in
`candidate_search`, and `candidate_paths` calls both. `auction` bids in phases, against paths that
it may lose to (`rival`). `tuning` has the numbers by which these decide.
"""
