import random
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(42)
torch.set_num_threads(1)

VOCAB = ["<pad>", "<bos>", "<eos>"] + list("0123456789+=")
IDS = {c: i for i, c in enumerate(VOCAB)}
PAD, BOS, EOS = 0, 1, 2
MAX_LEN = 40


def make_problem(rng):
    a, b = rng.randint(0, 29), rng.randint(0, 29)
    return f"{a}+{b}={a + b}"


def encode(text):
    ids = [BOS] + [IDS[c] for c in text] + [EOS]
    mask = [1] * len(ids) + [0] * (MAX_LEN - len(ids))
    ids = ids + [PAD] * (MAX_LEN - len(ids))
    return ids, mask


class SumsDataset(Dataset):
    def __init__(self, problems):
        self.items = [encode(p) for p in problems]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        ids, mask = self.items[i]
        input_ids = torch.tensor(ids)
        attention_mask = torch.tensor(mask)
        labels = input_ids.clone()
        return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


def answers_right(model, problems):
    model.eval()
    right = 0
    for problem in problems:
        question, answer = problem.split("=")
        ids = torch.tensor([[BOS] + [IDS[c] for c in question + "="]])
        out = ""
        with torch.no_grad():
            for _ in range(4):
                nxt = model(input_ids=ids).logits[0, -1].argmax().item()
                if nxt in (EOS, PAD):
                    break
                out += VOCAB[nxt]
                ids = torch.cat([ids, torch.tensor([[nxt]])], dim=1)
        right += out == answer
    return right / len(problems)


def main():
    rng = random.Random(0)
    problems = sorted({make_problem(rng) for _ in range(3000)})
    rng.shuffle(problems)
    eval_problems, train_problems = problems[:80], problems[80:]
    print(len(train_problems), "for training, e.g.", train_problems[:3])

    config = GPT2Config(
        vocab_size=len(VOCAB),
        n_positions=MAX_LEN,
        n_embd=64,
        n_layer=2,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=BOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
    )
    model = GPT2LMHeadModel(config)

    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=32,
            per_device_eval_batch_size=100,
            num_train_epochs=15,
            learning_rate=2e-3,
            warmup_steps=20,
            lr_scheduler_type="cosine",
            weight_decay=0.01,
            logging_steps=100,
            eval_strategy="epoch",
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            seed=42,
        )
        trainer = Trainer(
            model=model, args=args, train_dataset=SumsDataset(train_problems), eval_dataset=SumsDataset(eval_problems)
        )
        trainer.train()
        print(trainer.evaluate())
    print("answers right:", answers_right(model, eval_problems))


if __name__ == "__main__":
    main()
