"""The checks of `check.sh`: each is a function, each finding goes into one JSON; the exit code is 1 when one fails.

All of it takes at most `--seconds`, and no check may use up the time of all others: what hangs is killed and said so, and
the JSON is written whatever happens.
"""

import argparse
import glob
import json
import os
import signal
import subprocess
import sys
import time

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers", "pytorch_llama.py")
MIB = 2**20


class Clock:
    """What is left of the whole time, and of the time of one check."""

    def __init__(self, seconds):
        self.begun, self.seconds = time.monotonic(), seconds
        self.until = self.end = self.begun + seconds

    def share(self, part):
        """From now on at most this part of the whole time, as far as there is any left."""
        self.until = min(time.monotonic() + part * self.seconds, self.end)

    def run(self, command):
        """Runs a command to its end: exit code, standard output, standard error. One that takes too long is killed."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise RuntimeError(f"no time was left for {' '.join(command)}")
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            out, err = child.communicate(timeout=left)
        except BaseException as error:
            os.killpg(child.pid, signal.SIGKILL)
            kill_workers()
            child.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise RuntimeError(f"{' '.join(command)}: killed, it took longer than {left:.0f} s") from None
        return child.returncode, out, err


def kill_workers():
    """A worker leads a session of its own and outlives who started it; its number stands in the lock of its run."""
    for path in glob.glob(os.path.join(os.environ.get("TUI_TRAIN_HOME", "/nowhere"), "runs", "*", "lock")):
        try:
            with open(path) as lock:
                number = int(lock.read().strip())
            with open(f"/proc/{number}/cmdline", "rb") as line:
                ours = os.path.dirname(path).encode() in line.read()
            if ours:
                os.kill(number, signal.SIGKILL)
        except (OSError, ValueError):
            pass  # It has gone by itself.


class Check:
    def __init__(self, program, device, clock):
        self.program, self.device, self.clock = program, device, clock
        self.cuda = "cuda" in device
        # A processor tries the check itself.
        self.preset = "llama-160m" if self.cuda else "llama-tiny"

    def call(self, *arguments, settings=(), expect=0):
        command = [self.program, *arguments]
        for setting in settings:
            command += ["--set", setting]
        code, out, err = self.clock.run(command)
        if expect is not None and code != expect:
            raise RuntimeError(f"{' '.join(command)}: exit {code}: {err.strip()[-800:]}")
        return out

    def train(self, device, *settings, expect=0):
        out = self.call("run", "--json", settings=[f"train.device={device}", "schedule.warmup_updates=0", *settings], expect=expect)
        return [json.loads(line) for line in out.splitlines()]

    def doctor(self):
        return json.loads(self.call("doctor", "--json", expect=None))

    def torch(self):
        """The PyTorch whose libraries these are."""
        told = "import json, torch; print(json.dumps({'version': torch.__version__, 'cuda': torch.version.cuda}))"
        code, out, err = self.clock.run([sys.executable, "-c", told])
        if code != 0:
            raise RuntimeError(err.strip()[-800:])
        return json.loads(out)

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
            code, out, err = self.clock.run(command)
            if code != 0:
                return False, {**found, name: err.strip()[-800:]}
            found[name] = json.loads(out)
        return True, found


def losses(events):
    return [event["train/loss"] for event in events if event["type"] == "update"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--seconds", type=float, default=300)
    arguments = parser.parse_args()
    # Told to end, it still says what was found.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    clock = Clock(arguments.seconds)
    check = Check(arguments.program, arguments.device, clock)
    report = {"device": arguments.device, "checks": {}, "passed": False}
    # The largest part of the whole time that each may take.
    checks = [(check.parity, 0.4), (check.bf16, 0.2), (check.memory, 0.2), (check.out_of_memory, 0.2), (check.speed, 0.4)]
    try:
        for about in [check.torch, check.doctor]:
            clock.share(0.1)
            try:
                report[about.__name__] = about()
            except Exception as error:
                report[about.__name__] = {"error": str(error)}
        for work, part in checks:
            begun = time.monotonic()
            clock.share(part)
            try:
                passed, found = work()
            except Exception as error:  # One failed check must not hide the others.
                passed, found = False, {"error": str(error) or type(error).__name__}
            report["checks"][work.__name__] = {"passed": passed, "seconds": round(time.monotonic() - begun, 1), **found}
            print(f"{work.__name__}: {'passed' if passed else 'FAILED'}", file=sys.stderr)
        report["passed"] = all(found["passed"] for found in report["checks"].values())
    finally:
        for work, _ in checks:
            report["checks"].setdefault(work.__name__, {"passed": False, "error": "it was not reached"})
        report["seconds"] = round(time.monotonic() - clock.begun, 1)
        print(json.dumps(report, indent=1), flush=True)
    sys.exit(0 if report["passed"] else 1)


if __name__ == "__main__":
    main()
