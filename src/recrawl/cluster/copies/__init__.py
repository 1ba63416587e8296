"""Copies of a whole cluster: to folders of SQLite files, and from them or another cluster to a new one."""
