"""The checks of `check.sh`: each is a function, each finding goes into one JSON; the exit code is 1 when one fails."""

import argparse
import json
import os
import subprocess
import sys
import time

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers", "pytorch_llama.py")
MIB = 2**20


class Check:
    def __init__(self, program, device):
        self.program, self.device = program, device
        self.cuda = "cuda" in device
        # A processor tries the check itself.
        self.preset = "llama-160m" if self.cuda else "llama-tiny"

    def call(self, *arguments, settings=(), expect=0):
        command = [self.program, *arguments]
        for setting in settings:
            command += ["--set", setting]
        done = subprocess.run(command, capture_output=True, text=True)
        if expect is not None and done.returncode != expect:
            raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()[-800:]}")
        return done.stdout

    def train(self, device, *settings, expect=0):
        out = self.call("run", "--json", settings=[f"train.device={device}", "schedule.warmup_updates=0", *settings], expect=expect)
        return [json.loads(line) for line in out.splitlines()]

    def parity(self):
        """The same run on this device and on the processor: three optimizers, with and without accumulation."""
        worst = {}
        for optimizer in ["adamw", "adafactor", "adamw8bit"]:
            for accumulate in [1, 2]:
                same = [f"optimizer.name={optimizer}", f"train.accumulate={accumulate}", "train.max_updates=20", "train.validate_every=0"]
                traces = [losses(self.train(device, *same)) for device in ["libtorch-cpu", self.device]]
                off = max(abs(a - b) / a for a, b in zip(*traces, strict=True))
                worst[f"{optimizer} x{accumulate}"] = off
        # Sums of some hundred f32 in another order, twenty updates long.
        return all(off < 2e-3 for off in worst.values()), {"largest_relative_difference_of_losses": worst}

    def bf16(self):
        """Passes in bf16 learn what passes in f32 learn."""
        ends = {}
        for precision in ["f32", "bf16"]:
            trace = losses(self.train(self.device, "train.max_updates=60", "train.validate_every=0", f"train.precision={precision}"))
            ends[precision] = sum(trace[-10:]) / 10
        return abs(ends["bf16"] / ends["f32"] - 1) < 0.02, {"mean_of_the_last_ten_losses": ends}

    def memory(self):
        """Ledger, allocator and NVML of one and the same run."""
        settings = [f"model.preset={self.preset}", "train.max_updates=6", "train.validate_every=0", "train.accumulate=2"]
        settings += ["train.precision=bf16"] if self.cuda else []
        events = self.train(self.device, *settings)
        ledger, measured = events[0]["ledger"], events[-1]["summary"]["measured"]
        exact = ledger["parameter_bytes"] == measured["parameter_bytes"] and ledger["state_bytes"] == measured["state_bytes"]
        found = {
            "ledger_total_bytes_estimated": ledger["total_bytes_estimated"],
            **{name: measured.get(name) for name in [
                "peak_gpu_allocated_bytes", "peak_gpu_reserved_bytes", "peak_gpu_process_bytes", "peak_gpu_device_bytes"]},
            "notes": sorted({event["sys/gpu_note"] for event in events if "sys/gpu_note" in event}),
        }
        if not self.cuda:
            return exact, found
        allocated, reserved = measured["peak_gpu_allocated_bytes"], measured["peak_gpu_reserved_bytes"]
        found["allocator_over_ledger"] = allocated / ledger["total_bytes_estimated"]
        ordered = allocated <= reserved <= (measured.get("peak_gpu_process_bytes") or measured["peak_gpu_device_bytes"])
        return exact and ordered and 0.8 < found["allocator_over_ledger"] < 1.25, found

    def out_of_memory(self):
        """A batch that cannot fit ends its run with advice, and the next one trains."""
        large = ["model.hidden_size=8", "model.intermediate_size=1048576", "model.num_attention_heads=1", "model.num_hidden_layers=1",
                 "model.num_key_value_heads=1", "train.seq_len=128", "train.micro_batch=1024", "train.max_updates=3"]
        ended = self.train(self.device, *large, expect=1)[-1]
        after = self.train(self.device, "train.max_updates=3")[-1]
        return ended["reason"] == "out_of_memory" and after["reason"] == "finished", {"message": ended["message"]}

    def speed(self):
        """Side by side with PyTorch, eager and compiled."""
        found = {}
        cases = [("eager", []), ("compiled", ["--compile"])] if self.cuda else [("eager", [])]
        for name, more in cases:
            command = [sys.executable, PEER, "--program", self.program, "--device", self.device, "--preset", self.preset]
            command += ["--precision", "bf16" if self.cuda else "f32", "--rounds", "2" if self.cuda else "1", "--updates", "10", *more]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                return False, {**found, name: done.stderr.strip()[-800:]}
            found[name] = json.loads(done.stdout)
        return True, found


def losses(events):
    return [event["train/loss"] for event in events if event["type"] == "update"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--device", required=True)
    arguments = parser.parse_args()
    check = Check(arguments.program, arguments.device)
    report = {"device": arguments.device, "doctor": json.loads(check.call("doctor", "--json", expect=None)), "checks": {}}
    for work in [check.parity, check.bf16, check.memory, check.out_of_memory, check.speed]:
        begun = time.monotonic()
        try:
            passed, found = work()
        except Exception as error:  # One failed check must not hide the others.
            passed, found = False, {"error": str(error)}
        report["checks"][work.__name__] = {"passed": passed, "seconds": round(time.monotonic() - begun, 1), **found}
        print(f"{work.__name__}: {'passed' if passed else 'FAILED'}", file=sys.stderr)
    report["passed"] = all(found["passed"] for found in report["checks"].values())
    print(json.dumps(report, indent=1))
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
