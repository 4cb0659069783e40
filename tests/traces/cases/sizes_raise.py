# Sizes for which the torch call raises, among sizes for which it does not.
# expect: traces>=2
import torch

torch.manual_seed(8)
weight = torch.randn(6, 4)
batches = [torch.randn(5, 6), torch.randn(5, 6), torch.randn(5, 6), torch.randn(5, 9), torch.randn(5, 3), torch.randn(7, 6)]
for step in range(48):
    x = batches[step % len(batches)]
    try:
        y = (x @ weight).sum().item()
    except RuntimeError as error:
        print(step, error)
    else:
        print(step, round(y, 4))
