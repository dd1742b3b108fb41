"""What can be asked of the library on a command line: one module per command, found by its name.

A module has a docstring whose first line says what the command does, ``add_arguments(parser)`` and
``main(args)``, which returns an exit code, or None for 0. It is imported only to carry its command
out: some need PyTorch, others what draws pictures.
"""
