"""Published numbers and statements beside finished runs, and the rules by which they are judged."""
