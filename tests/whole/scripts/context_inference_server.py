# A request loop under inference_mode: tensors made inside cannot take part in autograd later.
# expect: compiled>=0.8, traces>=1
import torch
from torch import nn


class Server:
    def __init__(self, model):
        self.model = model.eval()
        self.cache = {}

    @torch.inference_mode()
    def handle(self, request):
        key = request["user"]
        state = self.cache.get(key)
        if state is None:
            state = torch.zeros(3)
        state = torch.tanh(self.model(request["x"]) + 0.5 * state)
        self.cache[key] = state
        return {"user": key, "best": int(state.argmax()), "inference": state.is_inference()}


torch.manual_seed(29)
server = Server(nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)))
requests = [{"user": f"u{k % 3}", "x": torch.randn(4)} for k in range(60)]
answers = [server.handle(request) for request in requests]
print("".join(str(a["best"]) for a in answers), all(a["inference"] for a in answers))
try:
    (server.cache["u0"] * nn.Parameter(torch.ones(3))).sum().backward()
except RuntimeError as error:
    print(str(error).split(".")[0])
print({k: f"{v.sum().item():.4f}" for k, v in server.cache.items()})
