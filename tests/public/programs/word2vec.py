"""Skip-gram with negative sampling on sparse embeddings, optimized by SparseAdam, after word2vec-pytorch."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.nn import init
from torch.utils.data import DataLoader, Dataset

from synthetic import sentences


class DataReader:
    def __init__(self, text, min_count):
        words = [line.split() for line in text.splitlines()]
        frequency = {}
        for line in words:
            for word in line:
                frequency[word] = frequency.get(word, 0) + 1
        self.id2word = [word for word, count in sorted(frequency.items(), key=lambda item: (-item[1], item[0])) if count >= min_count]
        self.word2id = {word: k for k, word in enumerate(self.id2word)}
        self.lines = [[self.word2id[word] for word in line if word in self.word2id] for line in words]
        powers = torch.tensor([frequency[word] for word in self.id2word]).pow(0.75)
        self.negatives = (powers / powers.sum() * 1000).round().long()
        self.negatives = torch.repeat_interleave(torch.arange(len(self.id2word)), self.negatives).tolist()
        random.shuffle(self.negatives)
        self.negpos = 0

    def get_negatives(self, size):
        response = self.negatives[self.negpos:self.negpos + size]
        self.negpos = (self.negpos + size) % len(self.negatives)
        return response if len(response) == size else response + self.negatives[0:size - len(response)]


class Word2vecDataset(Dataset):
    def __init__(self, data, window_size):
        self.data, self.window_size = data, window_size

    def __len__(self):
        return len(self.data.lines)

    def __getitem__(self, idx):
        word_ids = self.data.lines[idx]
        boundary = random.randint(1, self.window_size)
        return [(u, v, self.data.get_negatives(4)) for i, u in enumerate(word_ids)
                for j, v in enumerate(word_ids[max(i - boundary, 0):i + boundary]) if u != v]

    @staticmethod
    def collate(batches):
        all_u = [u for batch in batches for u, _, _ in batch if len(batch) > 0]
        all_v = [v for batch in batches for _, v, _ in batch if len(batch) > 0]
        all_neg_v = [neg_v for batch in batches for _, _, neg_v in batch if len(batch) > 0]
        return torch.LongTensor(all_u), torch.LongTensor(all_v), torch.LongTensor(all_neg_v)


class SkipGramModel(nn.Module):
    def __init__(self, emb_size, emb_dimension):
        super(SkipGramModel, self).__init__()
        self.u_embeddings = nn.Embedding(emb_size, emb_dimension, sparse=True)
        self.v_embeddings = nn.Embedding(emb_size, emb_dimension, sparse=True)
        initrange = 1.0 / emb_dimension
        init.uniform_(self.u_embeddings.weight.data, -initrange, initrange)
        init.constant_(self.v_embeddings.weight.data, 0)

    def forward(self, pos_u, pos_v, neg_v):
        emb_u, emb_v, emb_neg_v = self.u_embeddings(pos_u), self.v_embeddings(pos_v), self.v_embeddings(neg_v)
        score = torch.sum(torch.mul(emb_u, emb_v), dim=1)
        score = torch.clamp(score, max=10, min=-10)
        score = -F.logsigmoid(score)
        neg_score = torch.bmm(emb_neg_v, emb_u.unsqueeze(2)).squeeze()
        neg_score = torch.clamp(neg_score, max=10, min=-10)
        neg_score = -torch.sum(F.logsigmoid(-neg_score), dim=1)
        return torch.mean(score + neg_score)


class Word2VecTrainer:
    def __init__(self, text, emb_dimension=16, batch_size=16, window_size=3, iterations=3, initial_lr=0.02):
        self.data = DataReader(text, 2)
        self.dataloader = DataLoader(Word2vecDataset(self.data, window_size), batch_size=batch_size, shuffle=False, num_workers=0, collate_fn=Word2vecDataset.collate)
        self.iterations, self.initial_lr = iterations, initial_lr
        self.skip_gram_model = SkipGramModel(len(self.data.id2word), emb_dimension)

    def train(self):
        for iteration in range(self.iterations):
            print("Iteration: " + str(iteration + 1))
            optimizer = optim.SparseAdam(list(self.skip_gram_model.parameters()), lr=self.initial_lr)
            scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(self.dataloader))
            running_loss = 0.0
            for i, (pos_u, pos_v, neg_v) in enumerate(self.dataloader):
                optimizer.zero_grad()
                loss = self.skip_gram_model(pos_u, pos_v, neg_v)
                loss.backward()
                optimizer.step()
                scheduler.step()
                running_loss = running_loss * 0.9 + loss.item() * 0.1
                if i > 0 and i % 6 == 0:
                    print(" Loss: %.4f" % running_loss)

    def nearest(self, word, count=3):
        vectors = F.normalize(self.skip_gram_model.u_embeddings.weight.data, dim=1)
        values, ids = (vectors @ vectors[self.data.word2id[word]]).topk(count + 1)
        return [(self.data.id2word[k], round(v, 2)) for k, v in zip(ids.tolist()[1:], values.tolist()[1:])]


if __name__ == "__main__":
    random.seed(1)
    torch.manual_seed(1)
    w2v = Word2VecTrainer(sentences(320, seed=11))
    w2v.train()
    for word in ("king", "house", "spring"):
        print(word, w2v.nearest(word))
