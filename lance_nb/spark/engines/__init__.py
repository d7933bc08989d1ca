"""Where tasks run: in this process, in a pool of processes, or on Spark. One file each."""
