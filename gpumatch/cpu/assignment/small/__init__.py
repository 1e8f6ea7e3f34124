"""Small dense costs on the CPU, one or many, each in one compiled call."""
