"""Digits by a LightningModule with callbacks, checkpoints and a DataModule, after Lightning's examples."""

import logging
import os
import tempfile
import warnings

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback, EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader

from digits import Digits

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", ".*does not have many workers.*")


class DigitsData(L.LightningDataModule):
    def __init__(self, batch_size=32):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        self.train_set, self.valid_set, self.test_set = Digits(384, size=16, seed=1), Digits(96, size=16, seed=2), Digits(96, size=16, seed=3)

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.valid_set, batch_size=self.batch_size)

    def test_dataloader(self):
        return DataLoader(self.test_set, batch_size=self.batch_size)

    predict_dataloader = test_dataloader


class Classifier(L.LightningModule):
    def __init__(self, width=48, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(256, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 10))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss

    def evaluate(self, batch, stage):
        x, y = batch
        logits = self(x)
        self.log_dict({f"{stage}_loss": F.cross_entropy(logits, y), f"{stage}_acc": (logits.argmax(1) == y).float().mean()}, prog_bar=True)

    def validation_step(self, batch, batch_idx):
        self.evaluate(batch, "val")

    def test_step(self, batch, batch_idx):
        self.evaluate(batch, "test")

    def predict_step(self, batch, batch_idx):
        return self(batch[0]).argmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=self.hparams.lr, total_steps=self.trainer.estimated_stepping_batches), "interval": "step"}}


class Tell(Callback):
    def on_train_epoch_end(self, trainer, module):
        shown = {name: round(value.item(), 4) for name, value in sorted(trainer.callback_metrics.items())}
        print(f"epoch {trainer.current_epoch} step {trainer.global_step}", shown)


def main():
    L.seed_everything(7, workers=True)
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = ModelCheckpoint(dirpath=folder, monitor="val_loss", save_top_k=1, filename="{epoch}")
        trainer = L.Trainer(accelerator="cpu", max_epochs=5, enable_progress_bar=False, enable_model_summary=False, gradient_clip_val=1.0, accumulate_grad_batches=2,
                            logger=CSVLogger(folder), log_every_n_steps=4,
                            callbacks=[checkpoints, EarlyStopping("val_loss", patience=3), LearningRateMonitor(), Tell()])
        data, model = DigitsData(), Classifier()
        trainer.fit(model, data)
        print("best", os.path.basename(checkpoints.best_model_path), round(checkpoints.best_model_score.item(), 4))
        tested = trainer.test(model, data, ckpt_path="best", verbose=False, weights_only=False)
        print({name: round(value, 4) for name, value in tested[0].items()})
        again = Classifier.load_from_checkpoint(checkpoints.best_model_path, weights_only=False)
        predicted = torch.cat(trainer.predict(again, data))
        print("predicted", predicted[:20].tolist(), again.hparams)
        with open(os.path.join(trainer.logger.log_dir, "metrics.csv")) as file:
            print("columns", sorted(file.readline().strip().split(",")))


if __name__ == "__main__":
    main()
