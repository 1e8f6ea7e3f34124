"""Dense costs on the GPU: a sparse core, the auction for its duals, and rows of costs."""
