# What a call makes anew is the same in all iterations of its loop and another object in the next call. That is learned from the first call that comes after, of all
# such objects together: else each costs a recording, and a call that is interpreted in part. The variables are ones that a lambda closes over.
# expect: compiled>=0.93, traces<=8
import torch


def generate(call):
    x = torch.linspace(-1, 1, 12) + call
    first, second, third, fourth, fifth = ({"x": k} for k in range(5))
    look = lambda: [first, second, third, fourth, fifth]  # noqa: E731
    for i in range(200):
        x = first["x"] = x + 0.25
        x = second["x"] = x.sin()
        x = third["x"] = x * 0.5
        x = fourth["x"] = x.cos()
        x = fifth["x"] = x + 1
    return sum(each["x"].sum().item() for each in look())


total = 0.0
for call in range(12):
    total += generate(call)
print(f"{total:.4f}")
