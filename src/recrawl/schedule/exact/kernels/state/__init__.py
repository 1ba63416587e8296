"""Where the scheduler keeps what it knows: the view of its arrays, pages, lists, mixtures, recent signals."""
