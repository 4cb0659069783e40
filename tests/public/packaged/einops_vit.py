"""A vision transformer and an MLP-mixer written with einops, after vit-pytorch and mlp-mixer-pytorch."""

import torch
import torch.nn.functional as F
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import Rearrange, Reduce
from torch import nn
from torch.utils.data import DataLoader

from digits import Shapes


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, hidden_dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden_dim, dim), nn.Dropout(dropout))

    def forward(self, x):
        return self.net(x)


class Attention(nn.Module):
    def __init__(self, dim, heads=2, dim_head=16, dropout=0.0):
        super().__init__()
        self.heads, self.scale = heads, dim_head ** -0.5
        self.norm, self.attend, self.dropout = nn.LayerNorm(dim), nn.Softmax(dim=-1), nn.Dropout(dropout)
        self.to_qkv = nn.Linear(dim, heads * dim_head * 3, bias=False)
        self.to_out = nn.Linear(heads * dim_head, dim)

    def forward(self, x):
        qkv = self.to_qkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = map(lambda t: rearrange(t, "b n (h d) -> b h n d", h=self.heads), qkv)
        attn = self.dropout(self.attend(einsum(q, k, "b h i d, b h j d -> b h i j") * self.scale))
        return self.to_out(rearrange(einsum(attn, v, "b h i j, b h j d -> b h i d"), "b h n d -> b n (h d)"))


class ViT(nn.Module):
    def __init__(self, patch=8, dim=32, depth=2, dropout=0.1):
        super().__init__()
        self.to_patch_embedding = nn.Sequential(Rearrange("b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=patch, p2=patch), nn.LayerNorm(3 * patch ** 2),
                                                nn.Linear(3 * patch ** 2, dim), nn.LayerNorm(dim))
        self.pos_embedding = nn.Parameter(0.02 * torch.randn(1, (32 // patch) ** 2 + 1, dim))
        self.cls_token = nn.Parameter(torch.randn(dim))
        self.layers = nn.ModuleList([nn.ModuleList([Attention(dim, dropout=dropout), FeedForward(dim, 2 * dim, dropout)]) for _ in range(depth)])
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 6))

    def forward(self, img):
        x = self.to_patch_embedding(img)
        cls_tokens = repeat(self.cls_token, "d -> b d", b=x.shape[0])
        x, shapes = pack([cls_tokens, x], "b * d")
        x = x + self.pos_embedding
        for attn, ff in self.layers:
            x = attn(x) + x
            x = ff(x) + x
        cls_tokens, _ = unpack(x, shapes, "b * d")
        return self.head(cls_tokens)


class PreNormResidual(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.fn, self.norm = fn, nn.LayerNorm(dim)

    def forward(self, x):
        return self.fn(self.norm(x)) + x


def mixer(patch=8, dim=32, depth=2):
    patches = (32 // patch) ** 2

    def feed(size, factor, dense):
        return nn.Sequential(dense(size, factor * size), nn.GELU(), dense(factor * size, size))

    return nn.Sequential(Rearrange("b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=patch, p2=patch), nn.Linear(3 * patch ** 2, dim),
                         *[nn.Sequential(PreNormResidual(dim, feed(patches, 2, lambda a, b: nn.Conv1d(a, b, 1))), PreNormResidual(dim, feed(dim, 2, nn.Linear))) for _ in range(depth)],
                         nn.LayerNorm(dim), Reduce("b n c -> b c", "mean"), nn.Linear(dim, 6))


for name, make in (("vit", ViT), ("mixer", mixer)):
    torch.manual_seed(5)
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    train_loader = DataLoader(Shapes(192, seed=1), batch_size=16, shuffle=True)
    valid_loader = DataLoader(Shapes(48, seed=2), batch_size=16)
    for epoch in range(4):
        model.train()
        total = 0.0
        for images, _, targets in train_loader:
            loss = F.cross_entropy(model(images), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            right = sum((model(images).argmax(1) == targets).sum().item() for images, _, targets in valid_loader)
        print(f"{name} epoch {epoch}: {total / len(train_loader):.4f} right {right}/48")
images = Shapes(8, seed=3).images
tiles = rearrange(images, "(a b) c h w -> c (a h) (b w)", a=2)
print("tiles", tuple(tiles.shape), [round(v, 4) for v in reduce(tiles, "c h w -> c", "max").tolist()], "small", tuple(reduce(images, "b c (h 4) (w 4) -> b c h w", "mean").shape))
