"""Dense costs on the GPU: a sparse core, an auction for its duals, and rows of costs."""
