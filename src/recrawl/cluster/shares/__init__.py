"""What each shard gets of the budget: the controller, its rounds, shares and their tables."""
