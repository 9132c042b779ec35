"""A command of ropd, watched: seconds, processor seconds and resident memory, by phase where it trains."""
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

TICKS = os.sysconf("SC_CLK_TCK")
# Stages of progress.json as the phases of `ropd plan`.
PHASES = {"rollouts": "sampling", "sampling": "sampling", "student": "scoring by the student",
          "teacher": "scoring by the teacher", "updates": "updates"}


def phase_of(run):
    """The phase a run is in, from its progress.json."""
    try:
        stage = json.loads((run / "progress.json").read_text()).get("stage") or ""
    except (OSError, ValueError):
        return "start"
    return next((name for word, name in PHASES.items() if word in stage), stage or "start")


def processor_seconds(process_id):
    fields = pathlib.Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_bytes(process_id):
    """All that is resident, and what of it is the process's own: pages of mapped files go when others need them."""
    fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{process_id}/status").read_text().splitlines())
    return tuple(sum(1024 * int(fields[name].split()[0]) for name in names if name in fields)
                 for names in (("VmRSS",), ("RssAnon", "RssShmem")))


class Measured:
    def __init__(self):
        self.seconds = self.processor_seconds = 0.0
        self.peak_bytes = 0
        self.phases = {}  # name -> {seconds, processor_seconds, peak_bytes, own_bytes}
        self.exit_code = None
        self.output = ""

    def see(self, phase, seconds, processor, memory):
        resident, own = memory
        entry = self.phases.setdefault(phase, {"seconds": 0.0, "processor_seconds": 0.0, "peak_bytes": 0, "own_bytes": 0})
        entry["seconds"] += seconds
        entry["processor_seconds"] += processor
        entry["peak_bytes"] = max(entry["peak_bytes"], resident)
        entry["own_bytes"] = max(entry["own_bytes"], own)
        self.peak_bytes = max(self.peak_bytes, resident)

    def facts(self):
        return {"seconds": round(self.seconds, 1), "processor_seconds": round(self.processor_seconds, 1),
                "peak_bytes": self.peak_bytes, "phases": self.phases}


def run(command, log, run_directory=None, kill_when=None, signal_number=signal.SIGKILL, interval=0.2):
    """Runs to its end, or sends the signal once kill_when() says so. All output goes to the log, too."""
    result = Measured()
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as out:
        out.write(("\n$ " + " ".join(map(str, command)) + "\n").encode())
        out.flush()
        process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=out)
        pieces = []
        reader = threading.Thread(target=lambda: pieces.append(process.stdout.read()))
        reader.start()
        begin = last = time.monotonic()
        processor = 0.0
        is_killed = False
        while process.poll() is None:
            time.sleep(interval)
            try:
                now, used, memory = time.monotonic(), processor_seconds(process.pid), memory_bytes(process.pid)
            except (OSError, IndexError):
                break  # it has ended
            phase = phase_of(run_directory) if run_directory else "all"
            result.see(phase, now - last, used - processor, memory)
            last, processor = now, used
            if kill_when and not is_killed and kill_when():
                process.send_signal(signal_number)
                is_killed = True
        process.wait()
        reader.join()
        result.output = b"".join(pieces).decode(errors="replace")
        out.write(result.output.encode())
        result.seconds, result.processor_seconds = time.monotonic() - begin, processor
        result.exit_code = process.returncode
    return result
