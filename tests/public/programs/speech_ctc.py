"""Speech recognition: a recurrent net over frames with CTC loss, greedy decoding and error rates, after common DeepSpeech-like PyTorch code."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

ALPHABET = "_abcdefgh"  # the first one is the blank


class Speech(Dataset):
    """Each letter sounds for two to five frames, in a pattern of its own with noise."""

    def __init__(self, count, features, seed):
        generator = torch.Generator().manual_seed(seed)
        voices = torch.randn(len(ALPHABET), features, generator=torch.Generator().manual_seed(99))
        self.items = []
        for _ in range(count):
            length = int(torch.randint(3, 7, (1,), generator=generator))
            letters = torch.randint(1, len(ALPHABET), (length,), generator=generator)
            durations = torch.randint(2, 6, (length,), generator=generator)
            frames = voices[torch.repeat_interleave(letters, durations)]
            self.items.append((frames + 0.2 * torch.randn(frames.shape, generator=generator), letters))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(batch):
    batch.sort(key=lambda item: len(item[0]), reverse=True)
    frames, letters = zip(*batch)
    return (pad_sequence(frames, batch_first=True), torch.tensor([len(f) for f in frames]),
            torch.cat(letters), torch.tensor([len(t) for t in letters]))


class Acoustic(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.rnn = nn.LSTM(features, hidden, num_layers=1, bidirectional=True, batch_first=True)
        self.fc = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.GELU(), nn.Dropout(0.05), nn.Linear(hidden, len(ALPHABET)))

    def forward(self, frames, lengths):
        packed = pack_padded_sequence(self.norm(frames), lengths, batch_first=True)
        out, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return F.log_softmax(self.fc(out), dim=2).transpose(0, 1)


def greedy(log_probs, lengths):
    texts = []
    for best, length in zip(log_probs.argmax(2).t(), lengths):
        previous, text = 0, ""
        for symbol in best[:length].tolist():
            if symbol != previous and symbol != 0:
                text += ALPHABET[symbol]
            previous = symbol
        texts.append(text)
    return texts


def edit_distance(first, second):
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        above, row = row, [i]
        for j, b in enumerate(second, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    return row[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(3)
    train_loader = DataLoader(Speech(192, 12, 1), batch_size=args.batch, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(Speech(32, 12, 2), batch_size=args.batch, collate_fn=collate)
    model = Acoustic(12, 32)
    print("Num Model Parameters", sum(p.nelement() for p in model.parameters()))
    optimizer = torch.optim.AdamW(model.parameters(), 2e-2)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-2, steps_per_epoch=len(train_loader), epochs=args.epochs, anneal_strategy="linear")
    criterion = nn.CTCLoss(blank=0)
    for epoch in range(1, args.epochs + 1):
        model.train()
        for number, (frames, lengths, letters, counts) in enumerate(train_loader):
            optimizer.zero_grad()
            log_probs = model(frames, lengths)
            loss = criterion(log_probs, letters, lengths, counts)
            loss.backward()
            optimizer.step()
            scheduler.step()
            if number % 6 == 0:
                print(f"Epoch {epoch} [{number}/{len(train_loader)}] loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.6f}")
        model.eval()
        total, errors, characters = 0.0, 0, 0
        with torch.no_grad():
            for frames, lengths, letters, counts in test_loader:
                log_probs = model(frames, lengths)
                total += criterion(log_probs, letters, lengths, counts).item() / len(test_loader)
                wanted = ["".join(ALPHABET[k] for k in part.tolist()) for part in letters.split(counts.tolist())]
                found = greedy(log_probs, lengths)
                errors += sum(edit_distance(a, b) for a, b in zip(wanted, found))
                characters += sum(len(text) for text in wanted)
        print(f"Test: average loss {total:.4f}, CER {errors / characters:.4f}; {wanted[0]} heard as {found[0]!r}")


if __name__ == "__main__":
    main()
