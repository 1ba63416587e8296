"""Where pages wait until they are picked: near set, timing wheel, layers and their levels, cohorts."""
