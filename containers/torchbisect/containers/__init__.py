"""Installation and execution of torch: indexes, environments, processes; nothing about mismatches."""
