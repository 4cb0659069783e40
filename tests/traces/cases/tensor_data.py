# .data: reads, writes that no version counter shows, views of it, of gradients and of what the loop makes; a graph that was built before a write.
# expect: compiled>=0.6
import torch

torch.manual_seed(5)
w = torch.randn(5, requires_grad=True)
slow = torch.zeros(5)
x = torch.randn(7, 5)
kept = []


def main():
    total = 0
    for i in range(80):
        out = (x * w).tanh()
        loss = out.sum()
        loss.backward()
        w.data.add_(w.grad, alpha=-0.1)
        w.data.view(5)[1:].clamp_(-0.9, 0.9)
        slow.mul_(0.9).add_(w.data, alpha=0.1)
        w.grad.data.zero_()
        total += loss.data
        best = out.data.max(1)[1]
        if i % 20 == 19:
            data = w.data
            data[0] = 0.25
            kept.append((best.sum().item(), data.requires_grad, data.data_ptr() == w.data_ptr()))
    print(f"{total.item():.5f}", w._version, w.grad._version, slow.requires_grad)


main()
print([f"{v:.6f}" for v in [*w.tolist(), *slow.tolist()]], kept)
