"""A vision transformer with class token, warm-up and label smoothing, after pytorch/examples' vision_transformer and vit-pytorch."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from synthetic import Shapes


class PatchExtractor(nn.Module):
    def __init__(self, patch_size=8):
        super().__init__()
        self.patch_size = patch_size

    def forward(self, input_data):
        batch_size, channels, height, width = input_data.size()
        assert height % self.patch_size == 0 and width % self.patch_size == 0, f"Input height ({height}) and width ({width}) must be divisible by patch size"
        num_patches = (height // self.patch_size) * (width // self.patch_size)
        patches = input_data.unfold(2, self.patch_size, self.patch_size).unfold(3, self.patch_size, self.patch_size)
        return patches.permute(0, 2, 3, 1, 4, 5).contiguous().view(batch_size, num_patches, -1)


class InputEmbedding(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.linear_projection = nn.Linear(args.patch_size ** 2 * 3, args.latent_size)
        self.class_token = nn.Parameter(torch.randn(1, 1, args.latent_size) * 0.02)
        self.pos_embedding = nn.Parameter(torch.randn(1, (32 // args.patch_size) ** 2 + 1, args.latent_size) * 0.02)
        self.patchify = PatchExtractor(args.patch_size)

    def forward(self, input_data):
        projected = self.linear_projection(self.patchify(input_data))
        tokens = self.class_token.expand(len(projected), -1, -1)
        return torch.cat((tokens, projected), dim=1) + self.pos_embedding


class EncoderBlock(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(args.latent_size), nn.LayerNorm(args.latent_size)
        self.attention = nn.MultiheadAttention(args.latent_size, args.num_heads, dropout=args.dropout, batch_first=True)
        self.enc_MLP = nn.Sequential(nn.Linear(args.latent_size, args.latent_size * 2), nn.GELU(), nn.Dropout(args.dropout),
                                     nn.Linear(args.latent_size * 2, args.latent_size), nn.Dropout(args.dropout))

    def forward(self, emb_patches):
        first_norm = self.norm1(emb_patches)
        attention_out = self.attention(first_norm, first_norm, first_norm)[0]
        first_added = attention_out + emb_patches
        return self.enc_MLP(self.norm2(first_added)) + first_added


class ViT(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.embedding = InputEmbedding(args)
        self.encoders = nn.ModuleList([EncoderBlock(args) for _ in range(args.num_encoders)])
        self.MLPHead = nn.Sequential(nn.LayerNorm(args.latent_size), nn.Linear(args.latent_size, 6))

    def forward(self, test_input):
        enc_output = self.embedding(test_input)
        for enc_layer in self.encoders:
            enc_output = enc_layer(enc_output)
        return self.MLPHead(enc_output[:, 0])


class TrainEval:
    def __init__(self, args, model, train_dataloader, val_dataloader, optimizer, criterion, scheduler):
        self.args, self.model, self.optimizer, self.criterion, self.scheduler = args, model, optimizer, criterion, scheduler
        self.train_dataloader, self.val_dataloader = train_dataloader, val_dataloader

    def train_fn(self, current_epoch):
        self.model.train()
        total_loss = 0.0
        for t, (images, _, labels) in enumerate(self.train_dataloader):
            self.optimizer.zero_grad()
            logits = self.model(images)
            loss = self.criterion(logits, labels)
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            total_loss += loss.item()
        return total_loss / len(self.train_dataloader)

    def eval_fn(self, current_epoch):
        self.model.eval()
        total_loss, right = 0.0, 0
        with torch.no_grad():
            for images, _, labels in self.val_dataloader:
                logits = self.model(images)
                total_loss += self.criterion(logits, labels).item()
                right += (F.softmax(logits, dim=1).argmax(1) == labels).sum().item()
        return total_loss / len(self.val_dataloader), right

    def train(self):
        best_valid_loss = float("inf")
        for i in range(self.args.epochs):
            train_loss = self.train_fn(i)
            val_loss, right = self.eval_fn(i)
            marker = ""
            if val_loss < best_valid_loss:
                best_valid_loss, marker = val_loss, " *"
            print(f"Epoch {i}: training loss {train_loss:.4f} valid loss {val_loss:.4f} right {right} lr {self.scheduler.get_last_lr()[0]:.6f}{marker}")
        print(f"Best valid loss {best_valid_loss:.4f}")


def main():
    parser = argparse.ArgumentParser(description="Vision Transformer")
    parser.add_argument("--patch-size", type=int, default=8)
    parser.add_argument("--latent-size", type=int, default=32)
    parser.add_argument("--num-heads", type=int, default=4)
    parser.add_argument("--num-encoders", type=int, default=2)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    torch.manual_seed(77)
    train_data = DataLoader(Shapes(256, seed=1), batch_size=16, shuffle=True)
    valid_data = DataLoader(Shapes(64, seed=2), batch_size=32)
    model = ViT(args)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-2)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=10)
    cool = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs * len(train_data) - 10)
    scheduler = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cool], milestones=[10])
    TrainEval(args, model, train_data, valid_data, optimizer, nn.CrossEntropyLoss(label_smoothing=0.1), scheduler).train()


if __name__ == "__main__":
    main()
