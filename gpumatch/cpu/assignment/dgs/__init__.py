"""Deep Greedy Switching on the CPU: `engine` runs it, and says what each file here is for."""
