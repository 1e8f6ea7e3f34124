"""Types of other libraries, read without importing what the caller has not imported."""
