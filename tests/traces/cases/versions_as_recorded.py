# Version counters advance as eager's: by optimizers whose operations have no kernel of autograd's, by foreach operations, by what autograd copies into .grad.
# expect: traces>=1
import torch

torch.manual_seed(0)


def versions(opt, params):
    states = [sorted((key, value._version) for key, value in opt.state[p].items() if isinstance(value, torch.Tensor)) for p in params]
    return [p._version for p in params], [p.grad._version for p in params], states


for make in (
    lambda params: torch.optim.Adagrad(params, fused=True),
    lambda params: torch.optim.Adam(params, fused=True, amsgrad=True),
    lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9, fused=True),
    lambda params: torch.optim.AdamW(params, foreach=True),
    lambda params: torch.optim.RMSprop(params, foreach=False, momentum=0.5),
):
    model = torch.nn.Linear(4, 3)
    params = list(model.parameters())
    opt = make(params)
    x = torch.randn(5, 4)
    for i in range(16):
        opt.zero_grad(set_to_none=i % 4 != 3)
        y = model(x).tanh()
        y.t().square().sum().backward()
        opt.step()
        if i > 12:
            print(type(opt).__name__, i, *versions(opt, params))
    print(type(opt).__name__, *versions(opt, params))

batch, frozen = torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4).eval()
for i in range(16):
    (batch(torch.randn(5, 4)) + frozen(torch.randn(5, 4))).sum().backward()
print([(name, buffer._version) for norm in (batch, frozen) for name, buffer in norm.named_buffers()])

# What is written in place before a kernel takes over its memory has a counter of its own.
cell = torch.nn.RNNCell(4, 5)
for i in range(16):
    last = cell(torch.ones(4)).detach()
print(last._version)
twice = torch.ones(1, 1, requires_grad=True)
for i in range(16):
    twice.grad = None
    torch.nn.functional.linear(torch.ones(4, 1), (twice + twice.flip(0)) / 2).mean().backward()
print(twice.grad._version)

# What is written through .data advances no counter of the parameter's, also where a trace begins between the two; what is written beside it does.
weight = torch.nn.Parameter(torch.ones(4, 3))
for i in range(24):
    (weight * weight).sum().backward()
    torch.nn.utils.clip_grad_value_([weight], 0.05)
    weight.data.add_(weight.grad)
    if i % 5 == 2:
        print(weight._version)
    weight.data -= 0.02
    with torch.no_grad():
        weight.copy_(weight.detach())
print(weight._version)
