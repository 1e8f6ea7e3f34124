"""Algorithms of the GPU for graphs that are not bipartite."""
