"""semel beside its peers, on one cluster in one run: `make bench-peers`, and README.md in this folder."""
