# What is stored in a variable that an inner function shares is known to others: its graph can be asked for, and what it holds can be changed behind the trace.
# expect: traces>=1
import torch


def graphs():
    w = torch.nn.Parameter(torch.ones(4))
    seen = []
    for i in range(60):
        loss = ((w * (i + 1)).tanh() - 1).pow(2).mean()
        loss.backward()

        def again():
            return loss

        if i % 9 == 8:
            try:
                again().backward()
                seen.append("twice")
            except RuntimeError as error:
                seen.append(str(error)[:40])
    print(seen, w.grad)


def contents():
    kept, sizes = [], []
    for i in range(60):
        kept = [i]

        def change():
            return sorted(map(kept.append, [1, 2]), key=str)

        change()
        sizes.append((len(kept), kept[-1]))
    print(sizes)


def optimised():
    torch.manual_seed(0)
    w = torch.nn.Parameter(torch.randn(4, dtype=torch.float64))
    data = [torch.randn(4, dtype=torch.float64) for _ in range(3)]
    optimizer = torch.optim.LBFGS([w], lr=0.05, max_iter=3, history_size=3)
    for i in range(24):
        optimizer.zero_grad()
        loss = ((w * data[i % 3]).tanh() - 1).pow(2).mean()
        loss.backward()
        optimizer.step(lambda: loss)
    print([round(x, 9) for x in w.tolist()], optimizer.state[w]["func_evals"])


graphs()
contents()
optimised()
