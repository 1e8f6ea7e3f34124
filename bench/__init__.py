"""Benchmarks: one timing loop, one suite a paper, results as JSON, tables and plots from the JSON.

``python -m bench deveci2013 --out results.json`` measures.
``python -m bench report results.json`` prints. The benchmarks are not installed.
"""
