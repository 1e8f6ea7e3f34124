"""The papers' GPU kernels without a GPU: loops over threads that take turns in a seeded order."""
