"""Pure functions from clients' logits to targets; they know nothing of clients, rounds or files."""
