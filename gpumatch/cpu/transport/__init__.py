"""Exact transport on the CPU: the engine, and below it auctions, paths, cores and few columns."""
