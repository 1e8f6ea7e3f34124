"""Sparse costs on the CPU: the engine, its steps, and product matchings."""
