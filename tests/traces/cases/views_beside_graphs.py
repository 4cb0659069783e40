# Tensors with graphs that are handed out and are views of one another, as a model's output and its first token: the script gets real views (base, versions, writes), whose gradients go through the nodes.
# expect: compiled>=0.4
import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
class Out:
    def __init__(self, last, pooled): self.last, self.pooled = last, pooled
class Base(nn.Module):
    def __init__(self, kind):
        super().__init__(); self.kind = kind
        self.a, self.b, self.norm, self.pool = nn.Linear(6, 8), nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 8)
    def forward(self, x):
        h = torch.tanh(self.a(x)); h = h + F.gelu(self.b(h)); h = self.norm(h)
        if self.kind == "first": return Out(h, h[:, 0])
        if self.kind == "both": return Out(h[:, 1:], h[:, 0])
        if self.kind == "chain": return Out(h.transpose(1, 2), h.transpose(1, 2)[:, :, 0])
        if self.kind == "used":
            p = h[:, 0]
            return Out(p, torch.tanh(self.pool(p)))
        if self.kind == "pooled": return Out(h, torch.tanh(self.pool(h[:, 0])))
        if self.kind == "chunk": return Out(*h.chunk(2, dim=-1))
        if self.kind == "unbind": return Out(*h.unbind(1)[:2])
def run(kind):
    base, head = Base(kind), nn.LazyLinear(3)
    kept, total = [], 0.0
    x = torch.randn(4, 5, 6); y = torch.randint(0, 3, (4,))
    head(base(x).pooled.flatten(1))
    opt = torch.optim.SGD([*base.parameters(), *head.parameters()], lr=0.1)
    for i in range(40):
        out = base(x * (1 + i % 3))
        if i % 5 == 0: total += out.pooled.sum().item()
        kept.append(out)            # handed out at the loop's end
        if len(kept) == 2:
            o, q = kept; kept.clear()
            seen = []
            if kind == "used" and i % 3 == 0:
                o.last.register_hook(lambda g: seen.append(g.abs().sum().item()))
                total += torch.autograd.grad(q.pooled.sum(), q.last, retain_graph=True)[0].abs().sum().item()
            loss = F.cross_entropy(head(o.pooled.flatten(1)), y) + 0.1 * q.last.pow(2).mean()
            opt.zero_grad(); loss.backward(); opt.step()
            total += loss.item() + sum(seen)
            if i % 7 == 1: total += o.last._version + o.pooled._version + (o.pooled._base is o.last) + (o.pooled._base is o.last._base and o.last._base is not None) * 3
            if i == 33 and kind not in ("chunk", "unbind"):
                with torch.no_grad(): o.last[:, 0] = 1
                total += o.pooled.sum().item() + o.pooled._version
    out = base(x); g = torch.autograd.grad(out.pooled.sum(), out.last, allow_unused=True)[0]
    print(kind, f"{total:.4f}", [f"{p.grad.norm():.4f}" for p in base.parameters() if p.grad is not None], g is None, out.pooled.grad_fn.name())
for kind in ("first", "both", "chain", "used", "pooled", "chunk", "unbind"): run(kind)
