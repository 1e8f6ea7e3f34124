"""Live problems on the CPU: an optimal assignment that is kept while its costs change.

`state` says what is kept and what holds of it. `search` finds the one path that a change costs in
a dense table, and `changes` has the changes. `tables` calls both.
"""
