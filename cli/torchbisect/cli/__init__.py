"""The command line: wires the parts together, shows progress, sets exit codes; decides nothing itself."""
