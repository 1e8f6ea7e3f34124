"""The choice of where a call runs: the table of algorithms, the backends and the devices."""
