"""Tables, figures and pages from stored results."""
