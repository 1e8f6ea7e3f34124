"""Where a call runs: the table of algorithms, the backends, and the devices there are."""
