"""The surroundings of a running algorithm: control, interrupts, compile time, kept memory."""
