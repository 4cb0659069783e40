"""The Transformer of word_language_model.py: a decoder's mask, position codes, learned by plain gradient steps."""

from word_language_model import run

run(["--model", "Transformer", "--lr", "2", "--epochs", "3", "--bptt", "16"])
