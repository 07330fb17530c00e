"""Measurements: `python -m tests.benchmarks [NAME…] [--json]`. Ratios count, times are the machine's."""
