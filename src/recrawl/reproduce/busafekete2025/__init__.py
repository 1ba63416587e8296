"""Figures of Busa-Fekete et al. 2025."""
