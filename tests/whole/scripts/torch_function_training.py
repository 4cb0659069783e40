# A model whose inputs and losses are of a subclass, and parameters with a disabled __torch_function__: gradients are as with plain tensors.
# expect: compiled>=0.6, traces>=1
import torch


class Tagged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs)
        if type(result) is Tagged:
            tags = [a.tag for a in args if hasattr(a, "tag")]
            result.tag = tags[0] if tags else "none"
        return result


class Weight(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl


torch.manual_seed(3)
weight = (torch.randn(6, 6) / 3).as_subclass(Weight).requires_grad_()
bias = torch.zeros(6, requires_grad=True)
data = torch.randn(8, 6).as_subclass(Tagged)
data.tag = "batch"
losses = []
for step in range(60):
    loss = (torch.relu(data @ weight + bias) - data).square().mean()
    loss.backward()
    with torch.no_grad():
        for parameter in (weight, bias):
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
    losses.append(loss.detach().as_subclass(torch.Tensor).item())
print(type(loss).__name__, loss.tag, loss.requires_grad, type(weight).__name__, weight.is_leaf)
print([f"{v:.5f}" for v in losses[::10]], f"{weight.detach().sum().item():.5f}")
