"""Benchmarks: cases.py defines the measurements, bars.py the required results, run.py measures."""
