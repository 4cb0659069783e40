"""A denoising diffusion model: training with an exponential average of weights, then sampling, after denoising-diffusion-pytorch."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import einsum, nn
from torch.optim import Adam
from torch.utils.data import DataLoader

from synthetic import Digits


def exists(x):
    return x is not None


def default(val, d):
    if exists(val):
        return val
    return d() if callable(d) else d


def cycle(dl):
    while True:
        for data in dl:
            yield data


def extract(a, t, x_shape):
    b, *_ = t.shape
    return a.gather(-1, t).reshape(b, *((1,) * (len(x_shape) - 1)))


def cosine_beta_schedule(timesteps, s=0.008):
    t = torch.linspace(0, timesteps, timesteps + 1, dtype=torch.float64) / timesteps
    alphas_cumprod = torch.cos((t + s) / (1 + s) * math.pi * 0.5) ** 2
    alphas_cumprod = alphas_cumprod / alphas_cumprod[0]
    return torch.clip(1 - (alphas_cumprod[1:] / alphas_cumprod[:-1]), 0, 0.999)


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        half_dim = self.dim // 2
        emb = torch.exp(torch.arange(half_dim, device=x.device) * -(math.log(10000) / (half_dim - 1)))
        emb = x[:, None] * emb[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


class Block(nn.Module):
    def __init__(self, dim, dim_out):
        super().__init__()
        self.proj = nn.Conv2d(dim, dim_out, 3, padding=1)
        self.norm = nn.GroupNorm(4, dim_out)
        self.act = nn.SiLU()

    def forward(self, x, scale_shift=None):
        x = self.norm(self.proj(x))
        if exists(scale_shift):
            scale, shift = scale_shift
            x = x * (scale + 1) + shift
        return self.act(x)


class ResnetBlock(nn.Module):
    def __init__(self, dim, dim_out, *, time_emb_dim=None):
        super().__init__()
        self.mlp = nn.Sequential(nn.SiLU(), nn.Linear(time_emb_dim, dim_out * 2)) if exists(time_emb_dim) else None
        self.block1, self.block2 = Block(dim, dim_out), Block(dim_out, dim_out)
        self.res_conv = nn.Conv2d(dim, dim_out, 1) if dim != dim_out else nn.Identity()

    def forward(self, x, time_emb=None):
        scale_shift = None
        if exists(self.mlp) and exists(time_emb):
            scale_shift = self.mlp(time_emb)[:, :, None, None].chunk(2, dim=1)
        h = self.block2(self.block1(x, scale_shift=scale_shift))
        return h + self.res_conv(x)


class Attention(nn.Module):
    def __init__(self, dim, heads=2, dim_head=8):
        super().__init__()
        self.scale, self.heads = dim_head ** -0.5, heads
        self.norm = nn.GroupNorm(1, dim)
        self.to_qkv = nn.Conv2d(dim, heads * dim_head * 3, 1, bias=False)
        self.to_out = nn.Conv2d(heads * dim_head, dim, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = (t.reshape(b, self.heads, -1, h * w) for t in self.to_qkv(self.norm(x)).chunk(3, dim=1))
        sim = einsum("b h d i, b h d j -> b h i j", q * self.scale, k)
        out = einsum("b h i j, b h d j -> b h i d", sim.softmax(dim=-1), v)
        return self.to_out(out.permute(0, 1, 3, 2).reshape(b, -1, h, w)) + x


class Unet(nn.Module):
    def __init__(self, dim, dim_mults=(1, 2), channels=1):
        super().__init__()
        self.init_conv = nn.Conv2d(channels, dim, 5, padding=2)
        dims = [dim, *(dim * m for m in dim_mults)]
        in_out = list(zip(dims[:-1], dims[1:]))
        time_dim = dim * 4
        self.time_mlp = nn.Sequential(SinusoidalPosEmb(dim), nn.Linear(dim, time_dim), nn.GELU(), nn.Linear(time_dim, time_dim))
        self.downs, self.ups = nn.ModuleList([]), nn.ModuleList([])
        for ind, (dim_in, dim_out) in enumerate(in_out):
            is_last = ind >= len(in_out) - 1
            self.downs.append(nn.ModuleList([ResnetBlock(dim_in, dim_in, time_emb_dim=time_dim), Attention(dim_in),
                                             nn.Conv2d(dim_in, dim_out, 3, padding=1) if is_last else nn.Conv2d(dim_in, dim_out, 4, 2, 1)]))
        self.mid_block1 = ResnetBlock(dims[-1], dims[-1], time_emb_dim=time_dim)
        self.mid_attn = Attention(dims[-1])
        self.mid_block2 = ResnetBlock(dims[-1], dims[-1], time_emb_dim=time_dim)
        for ind, (dim_in, dim_out) in enumerate(reversed(in_out)):
            is_last = ind == len(in_out) - 1
            self.ups.append(nn.ModuleList([ResnetBlock(dim_out + dim_in, dim_out, time_emb_dim=time_dim), Attention(dim_out),
                                           nn.Conv2d(dim_out, dim_in, 3, padding=1) if is_last else
                                           nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), nn.Conv2d(dim_out, dim_in, 3, padding=1))]))
        self.final_res_block = ResnetBlock(dim * 2, dim, time_emb_dim=time_dim)
        self.final_conv = nn.Conv2d(dim, channels, 1)

    def forward(self, x, time):
        x = self.init_conv(x)
        r = x.clone()
        t = self.time_mlp(time)
        h = []
        for block, attn, downsample in self.downs:
            x = attn(block(x, t))
            h.append(x)
            x = downsample(x)
        x = self.mid_block2(self.mid_attn(self.mid_block1(x, t)), t)
        for block, attn, upsample in self.ups:
            x = torch.cat((x, h.pop()), dim=1)
            x = upsample(attn(block(x, t)))
        x = torch.cat((x, r), dim=1)
        return self.final_conv(self.final_res_block(x, t))


class GaussianDiffusion(nn.Module):
    def __init__(self, model, *, image_size, timesteps=30):
        super().__init__()
        self.model, self.image_size, self.num_timesteps = model, image_size, timesteps
        betas = cosine_beta_schedule(timesteps)
        alphas = 1.0 - betas
        alphas_cumprod = torch.cumprod(alphas, dim=0)
        alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
        register = lambda name, val: self.register_buffer(name, val.to(torch.float32))
        register("sqrt_alphas_cumprod", torch.sqrt(alphas_cumprod))
        register("sqrt_one_minus_alphas_cumprod", torch.sqrt(1.0 - alphas_cumprod))
        register("sqrt_recip_alphas_cumprod", torch.sqrt(1.0 / alphas_cumprod))
        register("sqrt_recipm1_alphas_cumprod", torch.sqrt(1.0 / alphas_cumprod - 1))
        variance = betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod)
        register("posterior_log_variance_clipped", torch.log(variance.clamp(min=1e-20)))
        register("posterior_mean_coef1", betas * torch.sqrt(alphas_cumprod_prev) / (1.0 - alphas_cumprod))
        register("posterior_mean_coef2", (1.0 - alphas_cumprod_prev) * torch.sqrt(alphas) / (1.0 - alphas_cumprod))

    @torch.no_grad()
    def p_sample(self, x, t):
        batched_times = torch.full((x.shape[0],), t, dtype=torch.long)
        pred_noise = self.model(x, batched_times)
        x_start = extract(self.sqrt_recip_alphas_cumprod, batched_times, x.shape) * x - extract(self.sqrt_recipm1_alphas_cumprod, batched_times, x.shape) * pred_noise
        x_start.clamp_(-1.0, 1.0)
        mean = extract(self.posterior_mean_coef1, batched_times, x.shape) * x_start + extract(self.posterior_mean_coef2, batched_times, x.shape) * x
        noise = torch.randn_like(x) if t > 0 else 0.0
        return mean + (0.5 * extract(self.posterior_log_variance_clipped, batched_times, x.shape)).exp() * noise

    @torch.no_grad()
    def sample(self, batch_size):
        img = torch.randn(batch_size, 1, self.image_size, self.image_size)
        for t in reversed(range(0, self.num_timesteps)):
            img = self.p_sample(img, t)
        return (img + 1) * 0.5

    def q_sample(self, x_start, t, noise=None):
        noise = default(noise, lambda: torch.randn_like(x_start))
        return extract(self.sqrt_alphas_cumprod, t, x_start.shape) * x_start + extract(self.sqrt_one_minus_alphas_cumprod, t, x_start.shape) * noise

    def p_losses(self, x_start, t, noise=None):
        noise = default(noise, lambda: torch.randn_like(x_start))
        model_out = self.model(self.q_sample(x_start=x_start, t=t, noise=noise), t)
        return F.mse_loss(model_out, noise)

    def forward(self, img):
        t = torch.randint(0, self.num_timesteps, (img.shape[0],)).long()
        return self.p_losses(img * 2 - 1, t)


class EMA:
    def __init__(self, beta):
        self.beta = beta

    def update_model_average(self, ma_model, current_model):
        for current_params, ma_params in zip(current_model.parameters(), ma_model.parameters()):
            ma_params.data = ma_params.data * self.beta + (1 - self.beta) * current_params.data


if __name__ == "__main__":
    torch.manual_seed(10)
    diffusion = GaussianDiffusion(Unet(8), image_size=16)
    ema, ema_model = EMA(0.95), copy.deepcopy(diffusion)
    opt = Adam(diffusion.parameters(), lr=1e-3)
    dl = cycle(DataLoader(Digits(128, size=16, seed=4), batch_size=6, shuffle=True))
    for step in range(40):
        opt.zero_grad()
        for _ in range(2):
            loss = diffusion(next(dl)[0])
            (loss / 2).backward()
        nn.utils.clip_grad_norm_(diffusion.parameters(), 1.0)
        opt.step()
        if step % 5 == 0:
            ema.update_model_average(ema_model, diffusion)
        if step % 8 == 7:
            print(f"{step}: {loss.item():.4f}")
    ema_model.eval()
    images = torch.cat(list(map(lambda n: ema_model.sample(batch_size=n), [2, 2])), dim=0)
    print("sampled", tuple(images.shape), [round(v, 3) for v in images.mean(dim=(1, 2, 3)).tolist()])
