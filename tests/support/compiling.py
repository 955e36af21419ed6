"""A script that asks if it is compiled, and the line of dynamo that tells it."""

SCRIPT = """\
import torch
@torch.compile(backend="eager")
def f(x):
    return x + 1 if torch.compiler.is_compiling() else x
print(f(torch.ones(3)))
"""
FILE = "torch/_dynamo/variables/torch.py"
LINE = "        torch.compiler.is_compiling: True,\n"
