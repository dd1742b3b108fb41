"""The bench: fedlogit, plain PyTorch loops and other frameworks, one turn after the other."""
