"""What the tests run on several ranks, by what is tested; `__main__` runs it."""
