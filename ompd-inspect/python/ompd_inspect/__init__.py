"""The command `ompd-inspect`, which explains hangs of OpenMP programs."""
