"""Benchmarks: cases.py says what is measured and how good it must be, run.py measures it."""
