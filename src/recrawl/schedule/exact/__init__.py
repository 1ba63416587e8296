"""The exact scheduler: at every moment the pages most worth crawling."""
