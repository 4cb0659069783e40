"""Text to image in a latent space: an autoencoder, a text encoder, a U-Net with cross attention, classifier-free guidance and DDIM steps, built as
Stable Diffusion's code is."""

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from synthetic import Shapes

COLOURS, KINDS = ("red", "green", "blue"), ("square", "disc")
VOCABULARY = {word: k for k, word in enumerate(("", "a", *COLOURS, *KINDS))}


def tokenize(prompts):
    return torch.tensor([[VOCABULARY[w] for w in prompt.split()] + [0] * (4 - len(prompt.split())) for prompt in prompts])


class AutoEncoder(nn.Module):
    def __init__(self, latent=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 2 * latent, 1))
        self.decoder = nn.Sequential(nn.Conv2d(latent, 16, 3, padding=1), nn.SiLU(), nn.Upsample(scale_factor=2), nn.Conv2d(16, 16, 3, padding=1), nn.SiLU(),
                                     nn.Upsample(scale_factor=2), nn.Conv2d(16, 3, 3, padding=1))

    def encode(self, x):
        mean, logvar = torch.chunk(self.encoder(x), 2, dim=1)
        return mean, torch.clamp(logvar, -20.0, 10.0)

    def forward(self, x):
        mean, logvar = self.encode(x)
        z = mean + torch.exp(0.5 * logvar) * torch.randn_like(mean)
        return self.decoder(z), mean, logvar


class TextEncoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.token_embedding = nn.Embedding(len(VOCABULARY), dim)
        self.position_embedding = nn.Parameter(0.02 * torch.randn(4, dim))
        layer = nn.TransformerEncoderLayer(dim, 2, 2 * dim, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1)
        self.final = nn.LayerNorm(dim)

    def forward(self, tokens):
        return self.final(self.layers(self.token_embedding(tokens) + self.position_embedding))


class CrossAttention(nn.Module):
    def __init__(self, query_dim, context_dim=None, heads=2, dim_head=16):
        super().__init__()
        context_dim = query_dim if context_dim is None else context_dim
        inner = heads * dim_head
        self.heads = heads
        self.to_q = nn.Linear(query_dim, inner, bias=False)
        self.to_k, self.to_v = nn.Linear(context_dim, inner, bias=False), nn.Linear(context_dim, inner, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner, query_dim), nn.Dropout(0.0))

    def forward(self, x, context=None):
        context = x if context is None else context
        q, k, v = self.to_q(x), self.to_k(context), self.to_v(context)
        b, n, _ = q.shape
        q, k, v = (t.reshape(b, -1, self.heads, t.shape[-1] // self.heads).transpose(1, 2) for t in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(out.transpose(1, 2).reshape(b, n, -1))


class GEGLU(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.proj = nn.Linear(dim, out * 2)

    def forward(self, x):
        x, gate = self.proj(x).chunk(2, dim=-1)
        return x * F.gelu(gate)


class SpatialTransformer(nn.Module):
    def __init__(self, channels, context_dim):
        super().__init__()
        self.norm = nn.GroupNorm(4, channels, eps=1e-6)
        self.proj_in, self.proj_out = nn.Conv2d(channels, channels, 1), nn.Conv2d(channels, channels, 1)
        self.attn1, self.attn2 = CrossAttention(channels), CrossAttention(channels, context_dim)
        self.ff = nn.Sequential(GEGLU(channels, 2 * channels), nn.Linear(2 * channels, channels))
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(channels), nn.LayerNorm(channels), nn.LayerNorm(channels)

    def forward(self, x, context):
        b, c, h, w = x.shape
        residual = x
        x = self.proj_in(self.norm(x)).flatten(2).transpose(1, 2)
        x = x + self.attn1(self.norm1(x))
        x = x + self.attn2(self.norm2(x), context)
        x = x + self.ff(self.norm3(x))
        return residual + self.proj_out(x.transpose(1, 2).reshape(b, c, h, w))


class ResBlock(nn.Module):
    def __init__(self, channels, out, emb):
        super().__init__()
        self.in_layers = nn.Sequential(nn.GroupNorm(4, channels), nn.SiLU(), nn.Conv2d(channels, out, 3, padding=1))
        self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(emb, out))
        self.out_layers = nn.Sequential(nn.GroupNorm(4, out), nn.SiLU(), nn.Conv2d(out, out, 3, padding=1))
        self.skip = nn.Identity() if channels == out else nn.Conv2d(channels, out, 1)

    def forward(self, x, emb):
        h = self.in_layers(x) + self.emb_layers(emb)[:, :, None, None]
        return self.skip(x) + self.out_layers(h)


class UNet(nn.Module):
    def __init__(self, channels=16, context_dim=32):
        super().__init__()
        emb = 4 * channels
        self.channels = channels
        self.time_embed = nn.Sequential(nn.Linear(channels, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.input = nn.Conv2d(4, channels, 3, padding=1)
        self.down1, self.attn1 = ResBlock(channels, channels, emb), SpatialTransformer(channels, context_dim)
        self.downsample = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.down2, self.attn2 = ResBlock(channels, 2 * channels, emb), SpatialTransformer(2 * channels, context_dim)
        self.middle = ResBlock(2 * channels, 2 * channels, emb)
        self.up2 = ResBlock(4 * channels, channels, emb)
        self.up1 = ResBlock(2 * channels, channels, emb)
        self.out = nn.Sequential(nn.GroupNorm(4, channels), nn.SiLU(), nn.Conv2d(channels, 4, 3, padding=1))

    def forward(self, x, t, context):
        half = self.channels // 2
        freqs = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
        angles = t[:, None].float() * freqs[None]
        emb = self.time_embed(torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1))
        h1 = self.attn1(self.down1(self.input(x), emb), context)
        h2 = self.attn2(self.down2(self.downsample(h1), emb), context)
        h = self.middle(h2, emb)
        h = self.up2(torch.cat([h, h2], dim=1), emb)
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        return self.out(self.up1(torch.cat([h, h1], dim=1), emb))


class DDIM:
    def __init__(self, steps=100, start=0.00085, end=0.012):
        betas = torch.linspace(start ** 0.5, end ** 0.5, steps) ** 2
        self.alphas = torch.cumprod(1 - betas, dim=0)

    def add_noise(self, x, noise, t):
        a = self.alphas[t].view(-1, 1, 1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * noise

    def step(self, noise, t, before, x):
        a, previous = self.alphas[t], self.alphas[before] if before >= 0 else torch.tensor(1.0)
        start = (x - (1 - a).sqrt() * noise) / a.sqrt()
        return previous.sqrt() * start + (1 - previous).sqrt() * noise


def prompts_of(targets):
    return [f"a {COLOURS[k // 2]} {KINDS[k % 2]}" for k in targets.tolist()]


def main():
    torch.manual_seed(21)
    loader = DataLoader(Shapes(96, 32, seed=5), batch_size=8, shuffle=True)
    vae, text, unet, scheduler = AutoEncoder(), TextEncoder(), UNet(), DDIM()
    optimizer = torch.optim.AdamW(vae.parameters(), lr=2e-3)
    for epoch in range(3):
        for images, _, _ in loader:
            recon, mean, logvar = vae(2 * images - 1)
            kl = 0.5 * torch.mean(mean.pow(2) + logvar.exp() - 1.0 - logvar)
            loss = F.l1_loss(recon, 2 * images - 1) + 1e-3 * kl
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        print(f"autoencoder epoch {epoch}: {loss.item():.4f} kl {kl.item():.4f}")
    vae.requires_grad_(False)
    with torch.no_grad():
        scale = 1 / vae.encode(2 * Shapes(32, 32, seed=6).images - 1)[0].std()
    params = [*unet.parameters(), *text.parameters()]
    optimizer = torch.optim.AdamW(params, lr=1e-3, weight_decay=1e-2)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 10))
    step = 0
    for epoch in range(4):
        for images, _, targets in loader:
            with torch.no_grad():
                latents = vae.encode(2 * images - 1)[0] * scale
            prompts = ["" if torch.rand(()) < 0.1 else prompt for prompt in prompts_of(targets)]
            noise, t = torch.randn_like(latents), torch.randint(0, 100, (len(latents),))
            predicted = unet(scheduler.add_noise(latents, noise, t), t, text(tokenize(prompts)))
            loss = F.mse_loss(predicted, noise)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(params, 1.0)
            optimizer.step()
            warm.step()
            optimizer.zero_grad()
            step += 1
            if step % 8 == 0:
                print(f"step {step}: loss {loss.item():.4f} norm {norm.item():.4f} lr {warm.get_last_lr()[0]:.5f}")
    vae.eval(), text.eval(), unet.eval()
    with torch.inference_mode():
        context = text(tokenize(["", "", "a red disc", "a blue square"]))
        latents = torch.randn(2, 4, 8, 8, generator=torch.Generator().manual_seed(0))
        steps = list(range(99, -1, -5))
        for k, t in enumerate(steps):
            noise = unet(torch.cat([latents] * 2), torch.full((4,), t), context)
            without, guided = noise.chunk(2)
            noise = without + 3.0 * (guided - without)
            latents = scheduler.step(noise, t, steps[k + 1] if k + 1 < len(steps) else -1, latents)
        images = (vae.decoder(latents / scale) / 2 + 0.5).clamp(0, 1)
    print("images", tuple(images.shape), [[round(v, 3) for v in row] for row in images.mean(dim=(2, 3)).tolist()])


if __name__ == "__main__":
    main()
