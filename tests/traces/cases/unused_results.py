# Operations with several results of which only one is used: indices of max_pool2d, statistics of batch norm, of sort only the indices.
# expect: compiled>=0.85, traces>=1
# expect-abort: none
import torch
import torch.nn.functional as F


def main():
    torch.manual_seed(0)
    images = torch.randn(4, 3, 16, 16)
    weight, bias = torch.randn(3), torch.randn(3)
    total = 0.0
    for i in range(80):
        with torch.no_grad():
            pooled = F.max_pool2d(images * 1.5, 3, 2, 1)
            normed = torch.native_batch_norm(pooled, weight, bias, None, None, True, 0.1, 1e-5)[0]
            values, _ = torch.max(normed, 1)
            _, order = torch.sort(values.flatten())
            _, places = F.max_pool2d(values, 2, return_indices=True)
            total = values.sum().item() + order[3].item() + places.sum().item()
    print(f"{total:.3f}")


main()
