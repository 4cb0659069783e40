# A tensor grows by one row in each iteration, by cat and in a preallocated buffer with a moving end; both must agree.
# expect: compiled>=0.4, traces>=1
import torch

torch.manual_seed(128)
wq, wk, wv = (torch.randn(4, 4) * 0.5 for _ in range(3))
keys, values = torch.empty(0, 4), torch.empty(0, 4)
store_k, store_v = torch.zeros(40, 4), torch.zeros(40, 4)
x = torch.randn(4)
agree = 0
for t in range(40):
    keys, values = torch.cat([keys, (x @ wk).unsqueeze(0)]), torch.cat([values, (x @ wv).unsqueeze(0)])
    store_k[t], store_v[t] = x @ wk, x @ wv
    q = x @ wq
    first = (keys @ q).softmax(0) @ values
    second = (store_k[:t + 1] @ q).softmax(0) @ store_v[:t + 1]
    agree += torch.allclose(first, second, atol=1e-5)
    x = torch.tanh(x + first)
print(agree, tuple(keys.shape), [f"{v:.4f}" for v in x.tolist()])
