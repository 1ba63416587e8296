"""How kernels are compiled, linked, kept on disk, passed arrays, and run uncompiled while that lasts."""
