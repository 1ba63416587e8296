"""What the operating system is used for: files, memory, processes, threads and sockets."""
