# Several backward() in an iteration: a graph that an earlier one did not touch, graphs that are read later, a leaf that has been written since.
# expect: compiled>=0.6, traces>=1
import torch
def main():
    torch.manual_seed(0)
    w = torch.randn(4, requires_grad=True); u = torch.randn(4, requires_grad=True)
    kept = []
    for i in range(40):
        x = torch.randn(4)
        a = (w * x).tanh()
        b = (u * a.detach().clone()).sum()
        b.backward()
        c = (a * 2).sum()
        if i == 30: kept.append(a)
        c.backward(retain_graph=(i == 35))
        d = (w * 3).relu()
        with torch.no_grad():
            w -= 0.1 * w.grad; u -= 0.1 * u.grad
        w.grad = None; u.grad = None
        if i >= 38: kept.append(d)
        if i == 35:
            try:
                c.backward()
                print("again", w.grad.sum().item() != 0)
            except RuntimeError as e:
                print("raised", "modified by an inplace" in str(e))
            w.grad = None
    for t in kept: print([round(n, 4) for n in t.tolist()], type(t.grad_fn).__name__)
    try: kept[-1].sum().backward(); print("fine", [round(n, 4) for n in w.grad.tolist()])
    except RuntimeError as e: print("raised", str(e)[:60])
    try: c.backward()
    except RuntimeError as e: print("raised", str(e)[:60])
main()
