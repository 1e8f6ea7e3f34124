"""Dense costs on the CPU: the engine and its steps."""
