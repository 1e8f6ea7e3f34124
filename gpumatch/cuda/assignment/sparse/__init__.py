"""Assignment of sparse costs on the GPU, in CSR: an auction for prices, then trees."""
