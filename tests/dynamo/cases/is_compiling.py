# Branches on torch.compiler.is_compiling(), is_dynamo_compiling() and is_exporting().
import torch


def which(x):
    if torch.compiler.is_compiling():
        return x + 100
    return x + 1


def deeper(x):
    return which(x) * (2 if torch.compiler.is_dynamo_compiling() else 3) + torch.compiler.is_exporting()


compiled = torch.compile(deeper, backend="eager")
a = b = torch.zeros(())
for i in range(100):
    a = a + compiled(torch.ones(()))
    b = b + deeper(torch.ones(()))
print(a, b)
