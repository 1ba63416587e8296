"""Today's systems as policies: each decides when a page is due, none weighs one page against another."""
