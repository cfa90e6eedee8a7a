import tempfile
from pydoc_data.topics import topics

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(5)
torch.set_num_threads(1)

LABELS = ["formatstrings", "string-methods", "debugger", "customization", "typesmapping"]
SPECIAL = ["[PAD]", "[CLS]", "[UNK]"]


def tokenize(text):
    return "".join(c.lower() if c.isalnum() else " " for c in text).split()


def build_examples(rng, per_snippet=(16, 28)):
    train, held_out = [], []
    for label, name in enumerate(LABELS):
        words = tokenize(topics[name])
        i = count = 0
        while i + per_snippet[1] < len(words):
            n = int(rng.integers(*per_snippet))
            (held_out if count % 5 == 4 else train).append((words[i : i + n], label))
            i, count = i + n, count + 1
    return train, held_out


class Snippets(Dataset):
    def __init__(self, examples, index):
        self.rows = [([1] + [index.get(w, 2) for w in words], label) for words, label in examples]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, label = self.rows[i]
        return {"input_ids": ids, "labels": label}


def collate(features):
    longest = max(len(f["input_ids"]) for f in features)
    ids = torch.zeros(len(features), longest, dtype=torch.long)
    for row, f in zip(ids, features):
        row[: len(f["input_ids"])] = torch.tensor(f["input_ids"])
    labels = torch.tensor([f["labels"] for f in features])
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    return {"accuracy": float((np.argmax(logits, axis=-1) == labels).mean())}


def main():
    train, held_out = build_examples(np.random.default_rng(5))
    counts = {}
    for words, _ in train:
        for w in words:
            counts[w] = counts.get(w, 0) + 1
    vocab = SPECIAL + sorted(w for w, n in counts.items() if n > 1)
    index = {w: i for i, w in enumerate(vocab)}
    print(len(train), "snippets for training,", len(held_out), "for evaluation")
    config = BertConfig(
        vocab_size=len(vocab),
        hidden_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=40,
        num_labels=len(LABELS),
        pad_token_id=0,
    )
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=BertForSequenceClassification(config),
            args=TrainingArguments(
                output_dir=folder,
                num_train_epochs=8,
                per_device_train_batch_size=16,
                per_device_eval_batch_size=64,
                learning_rate=1e-3,
                warmup_steps=20,
                eval_strategy="epoch",
                save_strategy="epoch",
                save_total_limit=1,
                load_best_model_at_end=True,
                metric_for_best_model="eval_loss",
                logging_strategy="epoch",
                report_to="none",
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=Snippets(train, index),
            eval_dataset=Snippets(held_out, index),
            data_collator=collate,
            compute_metrics=compute_metrics,
        )
        trainer.train()
        print({k: round(v, 4) for k, v in trainer.evaluate().items()})


if __name__ == "__main__":
    main()
