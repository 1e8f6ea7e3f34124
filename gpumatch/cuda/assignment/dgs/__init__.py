"""Deep Greedy Switching on the GPU: `engine` runs it; dgs.cu has its kernels."""
