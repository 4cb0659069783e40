# os.fork in the middle of a hot loop: the child goes on with the loop on its own.
# alone: it forks
import os

import torch

torch.set_num_threads(1)
x = torch.zeros(4)
child = None
for i in range(60):
    x = torch.cos(x + 0.1 * i)
    if i == 30:
        print("forking", flush=True)
        child = os.fork()
if child == 0:
    print("child", f"{x.sum().item():.6f}", flush=True)
    os._exit(5)
print(os.WEXITSTATUS(os.waitpid(child, 0)[1]))
print("parent", f"{x.sum().item():.6f}")
