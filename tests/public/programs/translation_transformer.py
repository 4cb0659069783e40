"""Translation with torch's Transformer: padded batches, masks, greedy decoding, after PyTorch's language translation tutorial."""

import math

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

UNK, PAD, BOS, EOS = 0, 1, 2, 3
LETTERS = "abcdefghij"
SOURCE_SIZE = TARGET_SIZE = 4 + len(LETTERS)


class Reversed(Dataset):
    """A word of a language that writes from right to left, each letter moved by one."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.pairs = []
        for _ in range(count):
            length = int(torch.randint(3, 8, (1,), generator=generator))
            word = torch.randint(0, len(LETTERS), (length,), generator=generator)
            self.pairs.append((word + 4, (word.flip(0) + 1) % len(LETTERS) + 4))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        return self.pairs[index]


def tensor_transform(ids):
    return torch.cat((torch.tensor([BOS]), ids, torch.tensor([EOS])))


def collate_fn(batch):
    sources, targets = zip(*[(tensor_transform(s), tensor_transform(t)) for s, t in batch])
    return pad_sequence(sources, padding_value=PAD), pad_sequence(targets, padding_value=PAD)


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size, dropout, maxlen=50):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        pos_embedding = torch.zeros((maxlen, emb_size))
        pos_embedding[:, 0::2] = torch.sin(pos * den)
        pos_embedding[:, 1::2] = torch.cos(pos * den)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pos_embedding", pos_embedding.unsqueeze(-2))

    def forward(self, token_embedding):
        return self.dropout(token_embedding + self.pos_embedding[:token_embedding.size(0), :])


class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, emb_size):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb_size)
        self.emb_size = emb_size

    def forward(self, tokens):
        return self.embedding(tokens.long()) * math.sqrt(self.emb_size)


class Seq2SeqTransformer(nn.Module):
    def __init__(self, num_encoder_layers, num_decoder_layers, emb_size, nhead, dim_feedforward=64, dropout=0.1):
        super().__init__()
        self.transformer = nn.Transformer(d_model=emb_size, nhead=nhead, num_encoder_layers=num_encoder_layers,
                                          num_decoder_layers=num_decoder_layers, dim_feedforward=dim_feedforward, dropout=dropout)
        self.generator = nn.Linear(emb_size, TARGET_SIZE)
        self.src_tok_emb, self.tgt_tok_emb = TokenEmbedding(SOURCE_SIZE, emb_size), TokenEmbedding(TARGET_SIZE, emb_size)
        self.positional_encoding = PositionalEncoding(emb_size, dropout=dropout)

    def forward(self, src, trg, src_mask, tgt_mask, src_padding_mask, tgt_padding_mask, memory_key_padding_mask):
        src_emb = self.positional_encoding(self.src_tok_emb(src))
        tgt_emb = self.positional_encoding(self.tgt_tok_emb(trg))
        outs = self.transformer(src_emb, tgt_emb, src_mask, tgt_mask, None, src_padding_mask, tgt_padding_mask, memory_key_padding_mask)
        return self.generator(outs)

    def encode(self, src, src_mask):
        return self.transformer.encoder(self.positional_encoding(self.src_tok_emb(src)), src_mask)

    def decode(self, tgt, memory, tgt_mask):
        return self.transformer.decoder(self.positional_encoding(self.tgt_tok_emb(tgt)), memory, tgt_mask)


def generate_square_subsequent_mask(size):
    return torch.triu(torch.ones((size, size), dtype=torch.bool), diagonal=1)


def create_mask(src, tgt):
    src_len, tgt_len = src.shape[0], tgt.shape[0]
    src_mask = torch.zeros((src_len, src_len)).type(torch.bool)
    return src_mask, generate_square_subsequent_mask(tgt_len), (src == PAD).transpose(0, 1), (tgt == PAD).transpose(0, 1)


def train_epoch(model, optimizer, loss_fn, loader):
    model.train()
    losses = 0
    for src, tgt in loader:
        tgt_input = tgt[:-1, :]
        src_mask, tgt_mask, src_padding_mask, tgt_padding_mask = create_mask(src, tgt_input)
        logits = model(src, tgt_input, src_mask, tgt_mask, src_padding_mask, tgt_padding_mask, src_padding_mask)
        optimizer.zero_grad()
        loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt[1:, :].reshape(-1))
        loss.backward()
        optimizer.step()
        losses += loss.item()
    return losses / len(list(loader))


def evaluate(model, loss_fn, loader):
    model.eval()
    losses = 0
    with torch.no_grad():
        for src, tgt in loader:
            tgt_input = tgt[:-1, :]
            src_mask, tgt_mask, src_padding_mask, tgt_padding_mask = create_mask(src, tgt_input)
            logits = model(src, tgt_input, src_mask, tgt_mask, src_padding_mask, tgt_padding_mask, src_padding_mask)
            losses += loss_fn(logits.reshape(-1, logits.shape[-1]), tgt[1:, :].reshape(-1)).item()
    return losses / len(list(loader))


def greedy_decode(model, src, src_mask, max_len, start_symbol):
    memory = model.encode(src, src_mask)
    ys = torch.ones(1, 1).fill_(start_symbol).type(torch.long)
    for i in range(max_len - 1):
        tgt_mask = generate_square_subsequent_mask(ys.size(0)).type(torch.bool)
        out = model.decode(ys, memory, tgt_mask).transpose(0, 1)
        next_word = torch.max(model.generator(out[:, -1]), dim=1)[1].item()
        ys = torch.cat([ys, torch.ones(1, 1).type_as(src.data).fill_(next_word)], dim=0)
        if next_word == EOS:
            break
    return ys


def text_of(ids):
    return "".join(LETTERS[k - 4] for k in ids.flatten().tolist() if k >= 4)


if __name__ == "__main__":
    torch.manual_seed(0)
    transformer = Seq2SeqTransformer(2, 2, 32, 4)
    for p in transformer.parameters():
        if p.dim() > 1:
            nn.init.xavier_uniform_(p)
    loss_fn = torch.nn.CrossEntropyLoss(ignore_index=PAD)
    optimizer = torch.optim.Adam(transformer.parameters(), lr=0.002, betas=(0.9, 0.98), eps=1e-9)
    train_loader = DataLoader(Reversed(400, 1), batch_size=20, collate_fn=collate_fn)
    val_loader = DataLoader(Reversed(60, 2), batch_size=20, collate_fn=collate_fn)
    for epoch in range(1, 6):
        train_loss = train_epoch(transformer, optimizer, loss_fn, train_loader)
        val_loss = evaluate(transformer, loss_fn, val_loader)
        print(f"Epoch: {epoch}, Train loss: {train_loss:.3f}, Val loss: {val_loss:.3f}")
    transformer.eval()
    with torch.no_grad():
        for source, target in Reversed(4, 3).pairs:
            src = tensor_transform(source).view(-1, 1)
            decoded = greedy_decode(transformer, src, torch.zeros(len(src), len(src)).type(torch.bool), len(src) + 5, BOS)
            print(text_of(source), "should be", text_of(target), "was", text_of(decoded))
