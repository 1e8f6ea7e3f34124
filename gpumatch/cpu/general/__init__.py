"""Matchings of graphs that need not be bipartite, on the CPU."""
