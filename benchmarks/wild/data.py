"""Makers of the data that scripts would download: text of Python's own documentation, scikit-learn's digits, made-up graphs.

python -m benchmarks.wild.data MAKER PATH [BESIDE]: BESIDE is where it will lie in the checkout.
"""

import gzip
import pickle
import re
import sys
from pathlib import Path

import numpy as np

CHARACTERS = 200_000
WORDS = 40_000
VOCABULARY = 400
GOOD, BAD = ("good", "fine", "great", "lovely"), ("bad", "poor", "awful", "dull")
FILLER = ("the", "film", "was", "a", "story", "actor", "very", "and", "it", "music", "scene", "end")


def documentation() -> str:
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    return "".join(c for c in text if c == "\n" or " " <= c <= "~")


def text(path: Path, _: Path) -> None:
    path.write_text(documentation()[:CHARACTERS])


def words() -> list[list[str]]:
    """Lines of words, the rare ones as <unk>."""
    lines = [re.findall(r"[a-z]+|[.,()]", line.lower()) for line in documentation().splitlines()]
    lines = [line for line in lines if len(line) > 3]
    counts: dict[str, int] = {}
    for line in lines:
        for word in line:
            counts[word] = counts.get(word, 0) + 1
    known = set(sorted(counts, key=lambda word: (-counts[word], word))[:VOCABULARY])
    kept, length = [], 0
    for line in lines:
        kept.append([word if word in known else "<unk>" for word in line])
        length += len(line)
        if length > WORDS:
            break
    return kept


def _write_parts(folder: Path, names: tuple[str, str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = words()
    cuts = (0, int(len(lines) * 0.8), int(len(lines) * 0.9), len(lines))
    for name, start, stop in zip(names, cuts[:-1], cuts[1:], strict=True):
        (folder / name).write_text("\n".join(" ".join(line) for line in lines[start:stop]) + "\n")


def corpus(folder: Path, _: Path) -> None:
    _write_parts(folder, ("train.txt", "valid.txt", "test.txt"))


def treebank(folder: Path, _: Path) -> None:
    _write_parts(folder, ("ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"))


def treebank_train(path: Path, _: Path) -> None:
    path.write_text("\n".join(" ".join(line) for line in words()) + "\n")


def _digits(train: bool) -> tuple[np.ndarray, np.ndarray]:
    import wild_digits

    return wild_digits.mnist(train)


def mnist_arrays(path: Path, _: Path) -> None:
    """As mlx-examples keeps them."""
    (images, labels), (others, answers) = _digits(True), _digits(False)
    table = {"training_images": images.reshape(-1, 784), "training_labels": labels}
    path.write_bytes(pickle.dumps({**table, "test_images": others.reshape(-1, 784), "test_labels": answers}))


def mnist_parts(path: Path, _: Path) -> None:
    """As the courses keep them: training, validation and test, flat and between 0 and 1."""
    (images, labels), (others, answers) = _digits(True), _digits(False)
    flat, more = (part.reshape(-1, 784).astype(np.float32) / 255 for part in (images, others))
    parts = ((flat[:1237], labels[:1237]), (flat[1237:], labels[1237:]), (more, answers))
    path.write_bytes(gzip.compress(pickle.dumps(parts)))


def cora_content(path: Path, beside: Path) -> None:
    """For the graph that lies in the checkout: words of papers, so that neighbours share a subject and its words."""
    edges = np.loadtxt(beside.with_suffix(".cites"), dtype=int)
    papers = np.unique(edges)
    place = {paper: i for i, paper in enumerate(papers)}
    chance = np.random.RandomState(0)
    subject = chance.randint(0, 7, len(papers))
    pairs = np.array([[place[a], place[b]] for a, b in edges])
    for _ in range(12):  # each takes the subject that most of its neighbours have
        votes = np.zeros((len(papers), 7))
        for a, b in ((0, 1), (1, 0)):
            np.add.at(votes, (pairs[:, a], subject[pairs[:, b]]), 1)
        subject = np.where(votes.max(1) > 0, (votes + chance.uniform(0, 0.9, votes.shape)).argmax(1), subject)
    typical = chance.uniform(size=(7, 120)) < 0.15
    said = chance.uniform(size=(len(papers), 120)) < np.where(typical[subject], 0.25, 0.04)
    said[:, 0] |= ~said.any(1)
    order = chance.permutation(len(papers))
    rows = [f"{papers[i]}\t" + "\t".join("1" if w else "0" for w in said[i]) + f"\tsubject_{subject[i]}" for i in order]
    path.write_text("\n".join(rows) + "\n")


def series(path: Path, _: Path) -> None:
    """Time series of two kinds (-1 and 1), one a line with its kind first, z-normalised: slow and fast waves in noise."""
    chance = np.random.RandomState(len(path.name))
    kinds = chance.choice([-1, 1], 240 if "TRAIN" in path.name else 120)
    moments = np.arange(64) / 64
    waves = [np.sin(2 * np.pi * ((2 if k < 0 else 4) * moments + chance.uniform())) + chance.normal(0, 0.5, 64) for k in kinds]
    rows = [[kind, *(wave - wave.mean()) / wave.std()] for kind, wave in zip(kinds, waves, strict=True)]
    np.savetxt(path, np.array(rows), delimiter="\t")


def reviews(path: Path, _: Path) -> None:
    """Sentences with a label: whether more good or more bad words are in it."""
    # Two names of one length must not get the same sentences: validation would be a part of training.
    chance = np.random.RandomState(sum(path.name.encode()))
    rows = ["sentence,label"]
    for _ in range(480 if "train" in path.name else 160):
        label = chance.randint(2)
        said = [*chance.choice(GOOD if label else BAD, 2), *chance.choice(BAD if label else GOOD, 1)]
        said += list(chance.choice(FILLER, chance.randint(4, 9)))
        chance.shuffle(said)
        rows.append(f"{' '.join(said)},{label}")
    path.write_text("\n".join(rows) + "\n")


def documentation_train(path: Path, _: Path) -> None:
    path.write_text("\n".join(documentation().splitlines()[:1500]))


def documentation_valid(path: Path, _: Path) -> None:
    path.write_text("\n".join(documentation().splitlines()[1500:1800]))


def _tokenizer(folder: Path, lines: list[str]) -> int:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(lines, trainers.WordLevelTrainer(vocab_size=VOCABULARY, special_tokens=special))
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="[SEP]", model_max_length=64, **names)
    fast.save_pretrained(folder)
    return tokenizer.get_vocab_size()


def tiny_bert(folder: Path, _: Path) -> None:
    """Untrained, with a tokenizer of whole words."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    size = _tokenizer(folder, [*GOOD, *BAD, *FILLER])
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertForSequenceClassification(BertConfig(vocab_size=size, max_position_embeddings=64, **shape)).save_pretrained(folder)


def tiny_gpt2(folder: Path, _: Path) -> None:
    """Untrained, with a tokenizer of the commonest words."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    size = _tokenizer(folder, documentation().splitlines()[:1500])
    ends = {"bos_token_id": 3, "eos_token_id": 3, "pad_token_id": 0}
    GPT2LMHeadModel(GPT2Config(vocab_size=size, n_positions=64, n_embd=48, n_layer=2, n_head=4, **ends)).save_pretrained(folder)


MAKERS = {
    maker.__name__: maker
    for maker in (
        *(text, corpus, treebank, treebank_train, mnist_arrays, mnist_parts, cora_content, series, reviews),
        *(documentation_train, documentation_valid, tiny_bert, tiny_gpt2),
    )
}


if __name__ == "__main__":
    name, made, beside = sys.argv[1:]
    MAKERS[name](Path(made), Path(beside))
