"""What test modules share: small runs, calls of commands, damage to files, refusals."""
