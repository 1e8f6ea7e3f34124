"""Sparse costs on the CPU.

`engine` is the default, in four steps: `trial`, then `auction` (`bidders` has its bids; see also
`joint_search`), then repair and `last_paths` (the arrays are in `paths`; the last rows have
`two_sided_search`). `tuning` has the numbers by which these decide. Kernels that other engines
call, too, are in `cpu/searches/`. `numeric/multiples.py` says how integers are counted, and
`numeric/auction_schedule.py` how epsilon falls. `cpu/matching/completion.py` tells whether a full
assignment exists. `small` solves small problems by the same kernels, and `product` and
`small_product` make maximum product matchings of the same steps.
"""
