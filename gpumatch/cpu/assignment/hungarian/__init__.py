"""The Hungarian algorithm on the CPU, classical and with alternating trees."""
