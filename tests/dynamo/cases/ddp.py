# A compiled module under DistributedDataParallel, and a compiled DistributedDataParallel, which torch's compiler splits by buckets.
import logging

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

logging.disable(logging.WARNING)  # torch's compiler warns with the time and the process, which differ
torch.manual_seed(0)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
for outside in (False, True):
    layers = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    model = DistributedDataParallel(layers if outside else torch.compile(layers, backend="aot_eager"))
    if outside:
        model = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(40):
        x = torch.randn(8, 4)
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(outside, round(loss.item(), 4))
dist.destroy_process_group()
