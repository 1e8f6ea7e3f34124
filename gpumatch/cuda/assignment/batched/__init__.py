"""Batches of many dense problems on the GPU."""
