"""The contract suite of policies."""
