"""One request for an assignment, checked once, and the problems that are made of it."""
