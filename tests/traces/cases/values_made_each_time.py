# Sizes, devices and strings that are made anew in each iteration, and go into torch calls: compared by value, so that no exit comes of it.
# expect: compiled>=0.8, side_exits<=30
# expect-abort: dict_changes
import torch


class Config:
    def __init__(self, device, mode):
        self.device, self.mode = device, mode


def place(name):
    return torch.device(name)


def main():
    x = torch.linspace(-1, 1, 12).view(2, 6)
    names = ["cpu"] * 3
    modes = ["mean", "sum"]
    total = torch.zeros(2, 3)
    config = Config("cpu", "me" + "an")
    width = 3
    for i in range(60):
        size_out = x.size()[:-1] + (width,)
        y = x[:, :width].reshape(size_out) * 2
        y = y + torch.zeros(2, width, device=torch.device(config.device))
        y = y.view((y.size(0),) + tuple(y.shape[1:]))
        z = torch.ones(y.shape[:1] + (width,), device=place(names[i % 3]))
        total += y + z
        config.mode = modes[i // 40][:2] + modes[i // 40][2:]
        total = total + torch.nn.functional.mse_loss(y, z, reduction=config.mode)
    print(total.tolist(), torch.finfo(total.dtype).max > 1)


main()
