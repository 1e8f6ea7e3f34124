"""The suites: a file for each question or paper; `python -m bench NAME` runs one."""
