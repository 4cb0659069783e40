# An exit rebuilds a graph that goes through a value with a node already: the script has no tensor of that value, so nothing has kept it.
# expect: traces>=1
import torch, torch.nn as nn
torch.manual_seed(0)
V, H = 20, 8
emb = nn.Embedding(V, H)
cell = nn.GRU(H, H)
out = nn.Linear(H, V)
ps = [*emb.parameters(), *cell.parameters(), *out.parameters()]
opt = torch.optim.SGD(ps, lr=0.01)
g = torch.Generator().manual_seed(1)
for step in range(80):
    m = int(torch.randint(3, 8, (1,), generator=g))
    b = torch.randint(0, V, (m, 1), generator=g)
    h = torch.zeros(1, 1, H)
    x = b[0]
    opt.zero_grad()
    loss = 0
    for i in range(m):
        y = torch.relu(emb(x).view(1, 1, -1))
        y, h = cell(y, h)
        o = torch.log_softmax(out(y[0]), 1)
        loss += nn.functional.nll_loss(o, b[i])
        x = o.topk(1)[1].squeeze().detach()
        if x.item() == 1:
            break
    loss.backward()
    opt.step()
    if step % 20 == 19:
        print(step, f"{loss.item() / m:.4f}")
