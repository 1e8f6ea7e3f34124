"""Transport on the GPU: `engine.solve` chooses among the algorithms for each form of costs."""
