"""Compiled kernels of the exact scheduler."""
