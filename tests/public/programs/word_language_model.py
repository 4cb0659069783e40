"""A word language model, recurrent or a Transformer, trained with truncated backpropagation, kept, loaded and sampled from, after pytorch/examples'
word_language_model. `--model Transformer` runs in transformer_language_model.py's place."""

import argparse
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

from synthetic import Corpus


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.5, tie_weights=False):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            if nhid != ninp:
                raise ValueError("When using the tied flag, nhid must be equal to emsize")
            self.decoder.weight = self.encoder.weight
        self.init_weights()
        self.rnn_type, self.nhid, self.nlayers = rnn_type, nhid, nlayers

    def init_weights(self):
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        if self.rnn_type == "LSTM":
            return (weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid))
        return weight.new_zeros(self.nlayers, bsz, self.nhid)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.1, max_len=500):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0).transpose(0, 1))

    def forward(self, x):
        return self.dropout(x + self.pe[:x.size(0), :])


class TransformerModel(nn.Transformer):
    def __init__(self, ntoken, ninp, nhead, nhid, nlayers, dropout=0.5):
        super().__init__(d_model=ninp, nhead=nhead, dim_feedforward=nhid, num_encoder_layers=nlayers, num_decoder_layers=1)
        self.src_mask = None
        self.pos_encoder = PositionalEncoding(ninp, dropout)
        self.input_emb = nn.Embedding(ntoken, ninp)
        self.ninp = ninp
        self.decoder = nn.Linear(ninp, ntoken)
        nn.init.uniform_(self.input_emb.weight, -0.1, 0.1)

    def forward(self, src, has_mask=True):
        if has_mask:
            if self.src_mask is None or self.src_mask.size(0) != len(src):
                self.src_mask = torch.log(torch.tril(torch.ones(len(src), len(src))))
        else:
            self.src_mask = None
        src = self.pos_encoder(self.input_emb(src) * math.sqrt(self.ninp))
        output = self.decoder(self.encoder(src, mask=self.src_mask))
        return F.log_softmax(output, dim=-1)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    """Hidden states in new tensors, apart from their history."""
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].view(-1)


def run(argv=None):
    parser = argparse.ArgumentParser(description="Word language model")
    parser.add_argument("--model", type=str, default="LSTM")
    parser.add_argument("--emsize", type=int, default=32)
    parser.add_argument("--nhid", type=int, default=32)
    parser.add_argument("--nlayers", type=int, default=2)
    parser.add_argument("--lr", type=float, default=4)
    parser.add_argument("--clip", type=float, default=0.25)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--bptt", type=int, default=12)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--tied", action="store_true")
    parser.add_argument("--nhead", type=int, default=2)
    parser.add_argument("--log-interval", type=int, default=4)
    args = parser.parse_args(argv)
    torch.manual_seed(1111)

    corpus = Corpus(400, 60, seed=4)
    ntokens = len(corpus)
    train_data, val_data, test_data = batchify(corpus.train, args.batch_size), batchify(corpus.valid, 5), batchify(corpus.test, 5)
    if args.model == "Transformer":
        model = TransformerModel(ntokens, args.emsize, args.nhead, args.nhid, args.nlayers, args.dropout)
    else:
        model = RNNModel(args.model, ntokens, args.emsize, args.nhid, args.nlayers, args.dropout, args.tied)
    criterion = nn.NLLLoss()
    lr = args.lr

    def evaluate(source):
        model.eval()
        total = 0.0
        hidden = model.init_hidden(5) if args.model != "Transformer" else None
        with torch.no_grad():
            for i in range(0, source.size(0) - 1, args.bptt):
                data, targets = get_batch(source, i, args.bptt)
                if args.model == "Transformer":
                    output = model(data).view(-1, ntokens)
                else:
                    output, hidden = model(data, hidden)
                    hidden = repackage_hidden(hidden)
                total += len(data) * criterion(output, targets).item()
        return total / (len(source) - 1)

    def train(epoch):
        model.train()
        total = 0.0
        hidden = model.init_hidden(args.batch_size) if args.model != "Transformer" else None
        for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
            data, targets = get_batch(train_data, i, args.bptt)
            model.zero_grad()
            if args.model == "Transformer":
                output = model(data).view(-1, ntokens)
            else:
                hidden = repackage_hidden(hidden)
                output, hidden = model(data, hidden)
            loss = criterion(output, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            for p in model.parameters():
                if p.grad is not None:
                    p.data.add_(p.grad, alpha=-lr)
            total += loss.item()
            if batch % args.log_interval == 0 and batch > 0:
                cur_loss = total / args.log_interval
                print("| epoch {:3d} | {:5d}/{:5d} batches | lr {:02.2f} | loss {:5.3f} | ppl {:8.3f}".format(
                    epoch, batch, len(train_data) // args.bptt, lr, cur_loss, math.exp(cur_loss)))
                total = 0

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pt")
        best_val_loss = None
        for epoch in range(1, args.epochs + 1):
            train(epoch)
            val_loss = evaluate(val_data)
            print("-" * 60)
            print("| end of epoch {:3d} | valid loss {:5.3f} | valid ppl {:8.3f}".format(epoch, val_loss, math.exp(val_loss)))
            print("-" * 60)
            if not best_val_loss or val_loss < best_val_loss:
                with open(path, "wb") as f:
                    torch.save(model, f)
                best_val_loss = val_loss
            else:
                lr /= 4.0
        with open(path, "rb") as f:
            model = torch.load(f, weights_only=False)
    if args.model != "Transformer":
        model.rnn.flatten_parameters()
    test_loss = evaluate(test_data)
    print("| End of training | test loss {:5.3f} | test ppl {:8.3f}".format(test_loss, math.exp(test_loss)))

    model.eval()
    hidden = model.init_hidden(1) if args.model != "Transformer" else None
    input = torch.randint(ntokens, (1, 1), dtype=torch.long)
    words = []
    with torch.no_grad():
        for i in range(60):
            if args.model == "Transformer":
                output = model(input, False)
                word_weights = output[-1].squeeze().div(0.8).exp()
                word_idx = torch.multinomial(word_weights, 1)[0]
                input = torch.cat([input, torch.full((1, 1), word_idx.item())], 0)
            else:
                output, hidden = model(input, hidden)
                word_weights = output.squeeze().div(0.8).exp()
                word_idx = torch.multinomial(word_weights, 1)[0]
                input.fill_(word_idx)
            words.append(corpus.words[word_idx])
    print(" ".join(words).replace("<eos> ", "\n"))


if __name__ == "__main__":
    run()
