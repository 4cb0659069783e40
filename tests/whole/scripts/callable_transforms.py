# Transforms as objects with __call__ and __repr__, composed, with random ones driven by a generator of their own.
# expect: compiled>=0.65, traces>=1
import torch


class Compose:
    def __init__(self, *transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def __repr__(self):
        return f"Compose({', '.join(map(repr, self.transforms))})"


class Normalise:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, x):
        return (x - self.mean) / self.std

    def __repr__(self):
        return f"Normalise({self.mean}, {self.std})"


class Flip:
    def __init__(self, p, seed):
        self.p, self.generator = p, torch.Generator().manual_seed(seed)

    def __call__(self, x):
        return x.flip(-1) if torch.rand(1, generator=self.generator).item() < self.p else x

    def __repr__(self):
        return f"Flip({self.p})"


torch.manual_seed(62)
pipeline = Compose(Normalise(0.5, 0.25), Flip(0.5, 1), Compose(Flip(0.1, 2), torch.abs))
position = torch.arange(4.0)
total = 0.0
for step in range(60):
    image = torch.rand(4, 4)
    total += (pipeline(image) * position).sum().item()
print(f"{total:.3f}", repr(pipeline.transforms[1]), len(repr(pipeline)) > 40)
