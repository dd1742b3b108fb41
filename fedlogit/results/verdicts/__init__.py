"""Published numbers and claims beside finished runs, and the rules by which they are judged."""
