"""The Hungarian algorithm on the GPU: Date and Nagi's classical and alternating tree variants.

K. Date, R. Nagi, "GPU-accelerated Hungarian algorithms for the Linear Assignment Problem", Parallel
Computing 57, 2016. classical.cu, tree_paper.cu (the paper's trees) and tree.cu (ours) describe the
kernels. `problem` has the initial reduction and converts costs and duals. `search` has the
launches.
"""
