"""Synthetic worlds: populations of pages and how they change."""
