"""The changing web on loopback: known changes, served, crawled live and judged by what happened."""
