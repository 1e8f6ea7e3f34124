"""What accompanies a running algorithm: control, interrupts, compile time, kept memory."""
