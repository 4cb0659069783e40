# .data = ...: a mean of weights that is replaced in each step, a parameter that gets new memory, and one that is used again afterwards.
# expect: compiled>=0.5
import torch

torch.manual_seed(8)
w = torch.randn(5, requires_grad=True)
slow = torch.nn.Parameter(torch.zeros(5))
x = torch.randn(7, 5)
before = slow.data


def main():
    for i in range(60):
        loss = (x * w).tanh().sum()
        loss.backward()
        w.data = w.data - 0.1 * w.grad
        slow.data = 0.9 * slow.data + 0.1 * w.data
        slow.data.mul_(1.01)
        w.grad = None
    print(w._version, slow._version, slow.detach().data_ptr() == slow.data_ptr(), before.sum().item())


def again():
    for i in range(40):
        (x * w).sum().backward()
        w.data = w.data * 0.99
        (x * w).sin().sum().backward()
        w.data = w.data - 0.01 * w.grad
        w.grad = None


main()
again()
print([f"{v:.6f}" for v in [*w.tolist(), *slow.tolist()]], w.is_leaf, w.requires_grad)
