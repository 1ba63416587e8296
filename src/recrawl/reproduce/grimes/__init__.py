"""Figures of Grimes et al."""
