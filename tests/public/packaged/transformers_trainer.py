"""A small BERT that classifies sentences under transformers' Trainer, after the text classification examples."""

import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np  # noqa: E402
import torch  # noqa: E402
from transformers import (BertConfig, BertForSequenceClassification, DataCollatorWithPadding, EarlyStoppingCallback, PreTrainedTokenizerFast, PrinterCallback,  # noqa: E402
                          Trainer, TrainerCallback, TrainingArguments, set_seed)
from transformers.utils import logging  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402

from digits import sentences  # noqa: E402

logging.set_verbosity_error()
logging.disable_progress_bar()
set_seed(3)
SAD = {"never", "nobody", "hides", "empty", "shadow", "tired", "without"}
lines = sentences(360, seed=2).splitlines()
words = sorted({word for line in lines for word in line.split()})
vocabulary = {word: k for k, word in enumerate(["[PAD]", "[UNK]", "[CLS]", *words])}
backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]")


class Texts(torch.utils.data.Dataset):
    def __init__(self, lines):
        self.encodings = tokenizer(lines)
        self.labels = [int(sum(word in SAD for word in line.split()) >= 1) for line in lines]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"input_ids": self.encodings["input_ids"][index], "attention_mask": self.encodings["attention_mask"][index], "labels": self.labels[index]}


class Tell(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        shown = {name: value for name, value in logs.items() if not name.endswith(("runtime", "per_second", "flos"))}
        print(f"step {state.global_step} epoch {state.epoch:.2f}", shown)


def compute_metrics(prediction):
    chosen = np.argmax(prediction.predictions, axis=-1)
    return {"accuracy": float((chosen == prediction.label_ids).mean())}


def main():
    train, valid = Texts(lines[:280]), Texts(lines[280:])
    config = BertConfig(vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=32, num_labels=2)
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(output_dir=folder, num_train_epochs=4, per_device_train_batch_size=16, per_device_eval_batch_size=32, learning_rate=2e-3, weight_decay=0.01,
                                      warmup_steps=8, lr_scheduler_type="cosine", eval_strategy="epoch", save_strategy="epoch", logging_steps=10, load_best_model_at_end=True,
                                      metric_for_best_model="accuracy", report_to=[], disable_tqdm=True, use_cpu=True, seed=3, save_total_limit=1)
        trainer = Trainer(model=model, args=arguments, train_dataset=train, eval_dataset=valid, compute_metrics=compute_metrics,
                          data_collator=DataCollatorWithPadding(tokenizer), callbacks=[Tell(), EarlyStoppingCallback(early_stopping_patience=3)])
        trainer.remove_callback(PrinterCallback)  # it tells of times
        result = trainer.train()
        print("trained", result.global_step, round(result.training_loss, 4))
        print({name: round(value, 4) for name, value in trainer.evaluate().items() if name in ("eval_loss", "eval_accuracy")})
        predicted = trainer.predict(valid)
        print("logits", np.round(predicted.predictions[:3], 3).tolist(), "labels", predicted.label_ids[:3].tolist())


if __name__ == "__main__":
    main()
