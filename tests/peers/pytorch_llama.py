"""PyTorch eager beside `tui-train bench`, in turns, as a ratio of tokens a second.

Needs torch 2.9 and, for `--optimizer hf-adafactor`, transformers 4.57. From the repository's root:

    cargo build --release
    LIBTORCH_USE_PYTORCH=1 cargo build --release --features libtorch --bin tui-train-libtorch
    python tests/peers/pytorch_llama.py --program target/release/tui-train

The model is a preset: `llama-tiny`, 5.3 million parameters, 8 sequences of 128 tokens an update, or with `--preset llama-160m`
134 million, 4 sequences of 1024. Both sides train with a global clip of 1.0, on a processor on two threads; each round measures
both, and the ratio is that of the medians. On a GPU (`--device libtorch-cuda:0`) both can compute in bf16 (`--precision bf16`,
`torch.autocast` there) with f32 parameters.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

# vocabulary, width, layers, heads, feed-forward, tokens of a sequence, sequences
PRESETS = {"llama-tiny": (4096, 256, 4, 8, 688, 128, 8), "llama-160m": (32000, 768, 12, 12, 2048, 1024, 4)}
WARM_UP = 3


def model(preset):
    """The same Llama in PyTorch's own modules."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    VOCABULARY, WIDTH, LAYERS, HEADS, FEED, TIME, _ = PRESETS[preset]

    def turned(x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
            self.gate_proj, self.up_proj = (nn.Linear(WIDTH, FEED, bias=False) for _ in range(2))
            self.down_proj = nn.Linear(FEED, WIDTH, bias=False)
            self.input_layernorm = nn.RMSNorm(WIDTH, eps=1e-5)
            self.post_attention_layernorm = nn.RMSNorm(WIDTH, eps=1e-5)

        def forward(self, x, cos, sin):
            rows, length, _ = x.shape
            normed = self.input_layernorm(x)
            heads = lambda linear: linear(normed).view(rows, length, HEADS, -1).transpose(1, 2)
            query, key = turned(heads(self.q_proj), cos, sin), turned(heads(self.k_proj), cos, sin)
            mixed = F.scaled_dot_product_attention(query, key, heads(self.v_proj), is_causal=True)
            x = x + self.o_proj(mixed.transpose(1, 2).reshape(rows, length, WIDTH))
            normed = self.post_attention_layernorm(x)
            return x + self.down_proj(F.silu(self.gate_proj(normed)) * self.up_proj(normed))

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed_tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
            self.norm = nn.RMSNorm(WIDTH, eps=1e-5)
            self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
            half = WIDTH // HEADS // 2
            angles = torch.arange(TIME)[:, None] * 10000.0 ** (-torch.arange(half) / half)
            self.register_buffer("cos", angles.cos())
            self.register_buffer("sin", angles.sin())

        def forward(self, ids):
            x = self.embed_tokens(ids)
            for layer in self.layers:
                x = layer(x, self.cos, self.sin)
            return self.lm_head(self.norm(x))

    torch.manual_seed(1)
    return Llama()


def optimizer(name, parameters, fused):
    """The optimizer of that name, with the settings that `tui-train` has by default."""
    import torch

    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=1e-3, weight_decay=1e-2, fused=fused)
    if name == "adafactor":
        return torch.optim.Adafactor(parameters, lr=1e-3)
    from transformers.optimization import Adafactor

    return Adafactor(parameters, lr=1e-3, scale_parameter=False, relative_step=False, warmup_init=False)


def measure(arguments):
    """Median seconds of an update, and the largest sizes: this process's, and on a GPU those of PyTorch's allocator, in bytes."""
    import torch
    from torch.nn import functional as F

    vocabulary, *_, time_steps, rows = PRESETS[arguments.preset]
    device = "cuda" if "cuda" in arguments.device else "cpu"
    torch.set_num_threads(2)
    llama = model(arguments.preset).to(device)
    rule = optimizer(arguments.optimizer, llama.parameters(), fused=device == "cuda")
    forward = torch.compile(llama) if arguments.compile else llama
    ids = torch.randint(0, 256, (rows, time_steps + 1), generator=torch.Generator().manual_seed(1)).to(device)
    seconds = []
    for _ in range(WARM_UP + arguments.updates):
        begun = time.perf_counter()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=arguments.precision == "bf16"):
            logits = forward(ids[:, :-1])
        loss = F.cross_entropy(logits.float().view(-1, vocabulary), ids[:, 1:].reshape(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(llama.parameters(), 1.0)
        rule.step()
        rule.zero_grad()
        # Reading the loss waits for the GPU.
        loss.item()
        seconds.append(time.perf_counter() - begun)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = {"seconds": statistics.median(seconds[WARM_UP:]), "resident": resident}
    if device == "cuda":
        found["gpu_allocated"] = torch.cuda.max_memory_allocated()
    return found


def theirs(arguments):
    """The measurement in a process of its own, so that its memory is its own, too."""
    command = [sys.executable, __file__, "--inner"]
    for name in ["optimizer", "updates", "preset", "device", "precision"]:
        command += [f"--{name}", str(getattr(arguments, name))]
    command += ["--compile"] if arguments.compile else []
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def ours(arguments):
    """The same from `tui-train bench`."""
    rule = "adamw" if arguments.optimizer == "adamw" else "adafactor"
    settings = [f"model.preset={arguments.preset}", f"optimizer.name={rule}", f"train.device={arguments.device}"]
    settings += [f"train.precision={arguments.precision}", "train.accumulate=1"]
    command = [arguments.program, "bench", "--json", "--updates", str(arguments.updates)]
    for setting in settings:
        command += ["--set", setting]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)
    peak = report["peak_bytes"]
    found = {"seconds": report["ms_per_update"]["median"] / 1e3, "resident": peak["host_rss"]}
    if peak["gpu_allocated"]:
        found["gpu_allocated"] = peak["gpu_allocated"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="tui-train")
    parser.add_argument("--device", default="libtorch-cpu")
    parser.add_argument("--preset", choices=list(PRESETS), default="llama-tiny")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--optimizer", choices=["adamw", "adafactor", "hf-adafactor"], default="adamw")
    parser.add_argument("--updates", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="torch.compile instead of eager")
    parser.add_argument("--inner", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inner:
        print(json.dumps(measure(arguments)))
        return
    rounds = [(theirs(arguments), ours(arguments)) for _ in range(arguments.rounds)]
    middle = lambda side, key: statistics.median(both[side][key] for both in rounds)
    preset = PRESETS[arguments.preset]
    tokens = preset[-1] * preset[-2]
    report = {
        "preset": arguments.preset,
        "precision": arguments.precision,
        "optimizer": arguments.optimizer,
        "device": arguments.device,
        "pytorch": "compiled" if arguments.compile else "eager",
        "ms_pytorch": round(middle(0, "seconds") * 1e3, 1),
        "ms_tui_train": round(middle(1, "seconds") * 1e3, 1),
        "speed_ratio": round(middle(0, "seconds") / middle(1, "seconds"), 3),
        "resident_mib": [round(middle(side, "resident") / 2**20) for side in (0, 1)],
        "tokens_per_second": [round(tokens / middle(side, "seconds")) for side in (0, 1)],
        "rounds_ms": [[round(side["seconds"] * 1e3, 1) for side in both] for both in rounds],
    }
    if all("gpu_allocated" in side for both in rounds for side in both):
        report["gpu_allocated_mib"] = [round(middle(side, "gpu_allocated") / 2**20) for side in (0, 1)]
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
