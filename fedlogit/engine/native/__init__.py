"""Training in C++, for CPUs: LeNet with Adam, perceptrons with plain SGD, passes of three CNNs.

It does the loop's steps in another order of summation, so numbers differ in the last bits. The code
is compiled on first use with the machine's own C++ compiler.
"""

from fedlogit.engine.native.engine import PERCEPTRONS, NativeEngine

__all__ = ["PERCEPTRONS", "NativeEngine"]
