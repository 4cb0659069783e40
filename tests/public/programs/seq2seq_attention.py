"""Translation with a recurrent encoder and a decoder with attention, trained pair by pair with teacher forcing, after PyTorch's seq2seq tutorial."""

import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

SOS_token, EOS_token, MAX_LENGTH, HIDDEN = 0, 1, 10, 32
teacher_forcing_ratio = 0.5
FRENCH = {"i": "je", "you": "tu", "we": "nous", "they": "ils", "eat": "mange", "see": "vois", "have": "ai", "want": "veux", "bread": "pain", "a": "un",
          "cat": "chat", "dog": "chien", "red": "rouge", "big": "grand", "book": "livre", "not": "pas"}


class Lang:
    def __init__(self, name):
        self.name = name
        self.word2index, self.word2count = {}, {}
        self.index2word = {0: "SOS", 1: "EOS"}
        self.n_words = 2

    def addSentence(self, sentence):
        for word in sentence.split(" "):
            if word not in self.word2index:
                self.word2index[word] = self.n_words
                self.word2count[word] = 1
                self.index2word[self.n_words] = word
                self.n_words += 1
            else:
                self.word2count[word] += 1


def make_pairs(count):
    """Adjectives stand behind their nouns, and "not" behind the verb's object."""
    pairs = []
    for _ in range(count):
        words = [random.choice(["i", "you", "we", "they"])]
        negated = random.random() < 0.3
        words += ["not"] if negated else []
        words += [random.choice(["eat", "see", "have", "want"]), "a"]
        adjective = random.choice(["red", "big", ""])
        noun = random.choice(["bread", "cat", "dog", "book"])
        words += ([adjective] if adjective else []) + [noun]
        other = [word for word in words if word not in ("not", adjective)]
        other += ([adjective] if adjective else []) + (["not"] if negated else [])
        pairs.append((" ".join(words), " ".join(FRENCH[word] for word in other)))
    return pairs


def prepareData(count):
    pairs = make_pairs(count)
    input_lang, output_lang = Lang("eng"), Lang("fra")
    for first, second in pairs:
        input_lang.addSentence(first)
        output_lang.addSentence(second)
    print("Counted words:", input_lang.name, input_lang.n_words, output_lang.name, output_lang.n_words)
    return input_lang, output_lang, pairs


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size)

    def forward(self, input, hidden):
        embedded = self.embedding(input).view(1, 1, -1)
        return self.gru(embedded, hidden)

    def initHidden(self):
        return torch.zeros(1, 1, self.hidden_size)


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size, dropout_p=0.1, max_length=MAX_LENGTH):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attn = nn.Linear(hidden_size * 2, max_length)
        self.attn_combine = nn.Linear(hidden_size * 2, hidden_size)
        self.dropout = nn.Dropout(dropout_p)
        self.gru = nn.GRU(hidden_size, hidden_size)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, input, hidden, encoder_outputs):
        embedded = self.dropout(self.embedding(input).view(1, 1, -1))
        attn_weights = F.softmax(self.attn(torch.cat((embedded[0], hidden[0]), 1)), dim=1)
        attn_applied = torch.bmm(attn_weights.unsqueeze(0), encoder_outputs.unsqueeze(0))
        output = torch.cat((embedded[0], attn_applied[0]), 1)
        output = F.relu(self.attn_combine(output).unsqueeze(0))
        output, hidden = self.gru(output, hidden)
        return F.log_softmax(self.out(output[0]), dim=1), hidden, attn_weights


def tensorFromSentence(lang, sentence):
    indexes = [lang.word2index[word] for word in sentence.split(" ")] + [EOS_token]
    return torch.tensor(indexes, dtype=torch.long).view(-1, 1)


def train(input_tensor, target_tensor, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    encoder_hidden = encoder.initHidden()
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    encoder_outputs = torch.zeros(MAX_LENGTH, encoder.hidden_size)
    loss = 0
    for ei in range(input_tensor.size(0)):
        encoder_output, encoder_hidden = encoder(input_tensor[ei], encoder_hidden)
        encoder_outputs[ei] = encoder_output[0, 0]
    decoder_input = torch.tensor([[SOS_token]])
    decoder_hidden = encoder_hidden
    use_teacher_forcing = True if random.random() < teacher_forcing_ratio else False
    for di in range(target_tensor.size(0)):
        decoder_output, decoder_hidden, _ = decoder(decoder_input, decoder_hidden, encoder_outputs)
        loss += criterion(decoder_output, target_tensor[di])
        if use_teacher_forcing:
            decoder_input = target_tensor[di]
        else:
            decoder_input = decoder_output.topk(1)[1].squeeze().detach()
            if decoder_input.item() == EOS_token:
                break
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item() / target_tensor.size(0)


def evaluate(encoder, decoder, sentence, input_lang, output_lang):
    with torch.no_grad():
        input_tensor = tensorFromSentence(input_lang, sentence)
        encoder_hidden = encoder.initHidden()
        encoder_outputs = torch.zeros(MAX_LENGTH, encoder.hidden_size)
        for ei in range(input_tensor.size()[0]):
            encoder_output, encoder_hidden = encoder(input_tensor[ei], encoder_hidden)
            encoder_outputs[ei] += encoder_output[0, 0]
        decoder_input, decoder_hidden = torch.tensor([[SOS_token]]), encoder_hidden
        decoded_words, decoder_attentions = [], torch.zeros(MAX_LENGTH, MAX_LENGTH)
        for di in range(MAX_LENGTH):
            decoder_output, decoder_hidden, decoder_attention = decoder(decoder_input, decoder_hidden, encoder_outputs)
            decoder_attentions[di] = decoder_attention.data
            topv, topi = decoder_output.data.topk(1)
            if topi.item() == EOS_token:
                decoded_words.append("<EOS>")
                break
            decoded_words.append(output_lang.index2word[topi.item()])
            decoder_input = topi.squeeze().detach()
        return decoded_words, decoder_attentions[:di + 1]


if __name__ == "__main__":
    random.seed(5)
    torch.manual_seed(5)
    input_lang, output_lang, pairs = prepareData(200)
    encoder = EncoderRNN(input_lang.n_words, HIDDEN)
    decoder = AttnDecoderRNN(HIDDEN, output_lang.n_words)
    encoder_optimizer, decoder_optimizer = optim.SGD(encoder.parameters(), lr=0.03), optim.SGD(decoder.parameters(), lr=0.03)
    criterion = nn.NLLLoss()
    total = 0
    for iter in range(1, 401):
        first, second = random.choice(pairs)
        total += train(tensorFromSentence(input_lang, first), tensorFromSentence(output_lang, second),
                       encoder, decoder, encoder_optimizer, decoder_optimizer, criterion)
        if iter % 40 == 0:
            print("(%d %d%%) %.4f" % (iter, iter / 400 * 100, total / 40))
            total = 0
    decoder.eval()
    for first, second in pairs[:5]:
        words, attentions = evaluate(encoder, decoder, first, input_lang, output_lang)
        print(">", first, "\n=", second, "\n<", " ".join(words), f"{attentions.max().item():.3f}\n")
