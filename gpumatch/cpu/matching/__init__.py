"""Maximum cardinality matching on the CPU: starts and searches, one algorithm a file."""
