"""Letters by an x-transformers decoder: cycled batches, accumulation, validation and generation between, after its enwik8 example."""

import os

os.environ["LOGURU_FORMAT"] = "{level} {name}:{function}:{line} {message}"  # the package's warnings without the time
import torch
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

from digits import sentences

NUM_BATCHES, BATCH_SIZE, GRADIENT_ACCUMULATE_EVERY, VALIDATE_EVERY, GENERATE_EVERY, SEQ_LEN = 40, 4, 2, 10, 20, 32


def cycle(loader):
    while True:
        for data in loader:
            yield data


torch.manual_seed(23)
text = sentences(300, seed=12)
letters = sorted(set(text))
numbers = torch.tensor([letters.index(c) for c in text])
data_train, data_val = numbers.split([len(numbers) - 2000, 2000])


def decode_tokens(tokens):
    return "".join(letters[k] for k in tokens.tolist())


class TextSamplerDataset(Dataset):
    def __init__(self, data, seq_len):
        super().__init__()
        self.data, self.seq_len = data, seq_len

    def __getitem__(self, index):
        rand_start = torch.randint(0, self.data.size(0) - self.seq_len - 1, (1,))
        return self.data[rand_start:rand_start + self.seq_len + 1].long()

    def __len__(self):
        return self.data.size(0) // self.seq_len


model = TransformerWrapper(num_tokens=len(letters), max_seq_len=SEQ_LEN, attn_layers=Decoder(dim=32, depth=2, heads=2, attn_dim_head=32, rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True))
model = AutoregressiveWrapper(model)
train_loader = cycle(DataLoader(TextSamplerDataset(data_train, SEQ_LEN), batch_size=BATCH_SIZE, drop_last=True))
val_dataset = TextSamplerDataset(data_val, SEQ_LEN)
val_loader = cycle(DataLoader(val_dataset, batch_size=BATCH_SIZE, drop_last=True))
optim = optim.Adam(model.parameters(), lr=3e-3)
for i in range(NUM_BATCHES):
    model.train()
    for __ in range(GRADIENT_ACCUMULATE_EVERY):
        loss = model(next(train_loader))
        (loss / GRADIENT_ACCUMULATE_EVERY).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optim.step()
    optim.zero_grad()
    if i % VALIDATE_EVERY == VALIDATE_EVERY - 1:
        model.eval()
        with torch.no_grad():
            print(f"{i} training loss: {loss.item():.4f} validation loss: {model(next(val_loader)).item():.4f}")
    if i % GENERATE_EVERY == GENERATE_EVERY - 1:
        model.eval()
        inp = val_dataset[i][:12]
        sample = model.generate(prompts=inp[None], seq_len=24, cache_kv=True)
        print(repr(decode_tokens(inp)), "goes on", repr(decode_tokens(sample[0])))
