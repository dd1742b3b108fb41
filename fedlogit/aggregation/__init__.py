"""Pure functions of what clients send: to targets, weights, contributions; no files, no rounds."""
