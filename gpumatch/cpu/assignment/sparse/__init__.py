"""Sparse costs on the CPU.

`engine` is the default, in four steps: `trial`, then `auction` (`bidders` has its bids, and
`bidding` their kernels; see also `epsilon` and `joint_search`), then repair and `last_paths` (the
arrays are in `paths`, kernels in `search`, and in `two_sided_search` for the last rows). `tuning`
has the numbers by which these decide, and `numeric/multiples.py` says how integers are counted.
`cpu/matching/completion.py` tells whether a full assignment exists. `product` and `small_product`
make maximum product matchings of the same steps.
"""
