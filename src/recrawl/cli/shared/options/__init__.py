"""Options of commands: what several commands ask for, checks of values, and how a command runs."""
