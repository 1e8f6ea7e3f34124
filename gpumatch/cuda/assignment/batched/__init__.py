"""Many dense problems at once on the GPU."""
