"""The bench: fedlogit, plain PyTorch loops and other frameworks, one repetition after the other."""
