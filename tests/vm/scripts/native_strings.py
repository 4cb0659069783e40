# Characters of strings and containment of strings in hot code; containers whose items have methods in Python.
class Same:
    """Has the hash of a string and is equal to it."""
    def __init__(self, text, log): self.text, self.log = text, log
    def __hash__(self): return hash(self.text)
    def __eq__(self, other):
        self.log.append(("eq", self.text))
        return self.text == other


class Fails(Same):
    def __eq__(self, other): raise ValueError("compared with " + str(other))


class Text(str):
    def __eq__(self, other): return not str.__eq__(self, other)
    def __hash__(self): return str.__hash__(self)
    def __getitem__(self, key): return ("item", key)
    def __contains__(self, item): return item == "yes"


def skip(source, at, characters):
    try:
        while source[at] in characters:
            at += 1
    except IndexError:
        return -at
    return at


def count(items, container):
    found = 0
    for item in items:
        if item in container:
            found += 1
        if item not in container:
            found -= 3
    return found, [item in container for item in items[:3]]


def ends(texts, n):
    r = []
    for i in range(n):
        text = texts[i % len(texts)]
        r.append((text[0], text[-1], text[i % len(text)], text[-len(text)]))
    return r[-len(texts):]


blank = frozenset(" \t\n")
for characters in (blank, set(blank), " \t\n", {" ": 1, "\t": 2}, list(" \t"), dict.fromkeys(blank), {1: 2, " ": 3}):
    for source in ("   \t\n x  ", " " * 60, "x", "", "\u20ac  ", "\U0001f600\u00e9", " " * 40 + "\u20ac"):
        print(skip(source, 0, characters), skip(source, -2, characters), end=" ")
    print()
words = ["w%d" % i for i in range(90)]
for container in (set(words[::2]), frozenset(words[::3]), dict.fromkeys(words[::2]), "w1 w2 w33", tuple(words[::5]), set(), {}, ""):
    print(count(words, container))
large = set(words)
for word in words[:70]: large.discard(word)
print(count(words, large), count(words * 3, {Text(word) for word in words}))
log = []
odd = {Same("w3", log), Same("w4", log), "w5"}
print(count(words, odd), log[:6], len(log))
print(count(words, {Same("w7", log): 1, "w8": 2}), len(log))
for broken in ({Fails("w50", log)}, {Fails("w50", log): 1}, frozenset([Fails("w50", log), "w1"])):
    try:
        count(words, broken)
    except ValueError as error:
        print(error, error.__traceback__.tb_next.tb_lineno)
mixed = words[:40] + [1, None, 2.5, (1,), Text("yes"), Text("w1")] + words[40:]
for container in (set(words), dict.fromkeys(mixed[:-1]), Text("w1 yes"), tuple(mixed)):
    print(count(mixed, container))
for container in ("w1 w2", 5, {1}):
    try:
        print(count(words + [[], 1], container))
    except TypeError as error:
        print(error)
print(ends(["abc", "\u00e9t\u00e9", "\u20acuro", "x", "\U0001f600!"], 60), ends(["abc", b"abc", [1, 2], (3, 4), Text("t")], 40))
for text, at in (("abc", 3), ("abc", -4), ("abc", 2**70), ("abc", True), ("abc", 1.0), ("", 0)):
    def item(n):
        for i in range(n): value = "xyz"[i % 3]
        return text[at], value
    try:
        for _ in range(20): print(item(30), end=" ")
    except (IndexError, TypeError) as error:
        print(error)
    print()
