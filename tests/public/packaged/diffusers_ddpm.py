"""Unconditional image generation with diffusers' UNet2DModel and schedulers, after its training example."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from diffusers import DDIMScheduler, DDPMScheduler, UNet2DModel  # noqa: E402
from diffusers.optimization import get_cosine_schedule_with_warmup  # noqa: E402
from diffusers.training_utils import EMAModel  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

from digits import Digits  # noqa: E402

torch.manual_seed(2)
model = UNet2DModel(sample_size=16, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8, attention_head_dim=8,
                    down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
print("parameters", sum(p.numel() for p in model.parameters()))
noise_scheduler = DDPMScheduler(num_train_timesteps=100, beta_schedule="squaredcos_cap_v2")
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-6)
loader = DataLoader(Digits(128, size=16, seed=1), batch_size=8, shuffle=True)
epochs = 3
lr_scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=5, num_training_steps=len(loader) * epochs)
ema = EMAModel(model.parameters(), decay=0.95, use_ema_warmup=True)
for epoch in range(epochs):
    model.train()
    for step, (images, _) in enumerate(loader):
        clean = images * 2 - 1
        noise = torch.randn(clean.shape)
        timesteps = torch.randint(0, noise_scheduler.config.num_train_timesteps, (len(clean),), dtype=torch.int64)
        noisy = noise_scheduler.add_noise(clean, noise, timesteps)
        predicted = model(noisy, timesteps, return_dict=False)[0]
        loss = F.mse_loss(predicted, noise)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        lr_scheduler.step()
        optimizer.zero_grad()
        ema.step(model.parameters())
        if step % 4 == 3:
            print(f"epoch {epoch} step {step}: loss {loss.detach().item():.4f} lr {lr_scheduler.get_last_lr()[0]:.6f} ema {ema.cur_decay_value:.4f}")
ema.store(model.parameters())
ema.copy_to(model.parameters())
model.eval()
for scheduler, steps in ((DDPMScheduler.from_config(noise_scheduler.config), 20), (DDIMScheduler.from_config(noise_scheduler.config), 10)):
    scheduler.set_timesteps(steps)
    generator = torch.Generator().manual_seed(0)
    image = torch.randn((2, 1, 16, 16), generator=generator)
    with torch.no_grad():
        for t in scheduler.timesteps:
            image = scheduler.step(model(image, t).sample, t, image, generator=generator).prev_sample
    print(type(scheduler).__name__, [round(v, 3) for v in (image / 2 + 0.5).clamp(0, 1).mean(dim=(1, 2, 3)).tolist()])
ema.restore(model.parameters())
