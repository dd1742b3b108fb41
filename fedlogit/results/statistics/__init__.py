"""Statistics over runs: intervals and tests of means, ranks of methods, the set of best methods."""
