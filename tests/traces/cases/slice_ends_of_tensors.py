# Elements of an integer tensor are the ends of slices: one that leaves all of a row runs no operation, and is read all the same.
# expect: traces>=1
import torch
torch.manual_seed(0)
y = torch.arange(18.).reshape(6, 3)
total = 0.0
for it in range(200):
    u = torch.randint(0, 4, (6,))
    n = 0
    s = torch.randint(0, 2, (6,))
    z = y.clone()
    for b in range(6):
        n += y[b, :u[b]].numel()
        total += y[b, s[b]:].sum()
        z[b, :u[b]] = -1.0
        total += z[b].sum() + y[: u[b] + 3].sum() + y[b, u[b]::2].sum()
    if n != int(u.sum()):
        print("wrong", it, n, int(u.sum()))
    if it % 50 == 49:
        print(f"{float(total):.1f}", f"{z.sum().item()}")
    if it % 60 == 59:
        try:
            y[0, : torch.tensor(1.5)]
        except TypeError as error:
            print(error)
