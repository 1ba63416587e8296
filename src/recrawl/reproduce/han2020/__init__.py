"""Figures of Han et al. 2020."""
