"""Benchmarks: cases.py says what is measured, bars.py how good it must be, run.py measures it."""
