"""Runs the program and collects facts: one line each, with ours and theirs."""
import json
import subprocess


class Report:
    def __init__(self, program, folder, keeps=False):
        """keeps: facts of an earlier call stay until they are found anew."""
        self.program, self.folder, self.rows = program, folder, []
        if keeps and (folder / "facts.json").exists():
            self.rows = json.loads((folder / "facts.json").read_text())

    def ropd(self, *arguments, fails=False):
        """Calls the program; its standard output, or its message when it is meant to fail."""
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        if (done.returncode != 0) != fails:
            raise RuntimeError(f"ropd {' '.join(map(str, arguments))}: exit {done.returncode}: {done.stderr.strip()[-500:]}")
        return done.stderr if fails else done.stdout

    def fact(self, name, ours, theirs, agrees):
        self.rows = [row for row in self.rows if row["fact"] != name]
        self.rows.append({"fact": name, "ours": str(ours), "theirs": str(theirs), "agrees": bool(agrees)})
        print(f"{'ok  ' if agrees else 'DIFF'}  {name}: ours {ours}, theirs {theirs}", flush=True)

    def failed(self):
        return [row for row in self.rows if not row["agrees"]]

    def save(self):
        (self.folder / "facts.json").write_text(json.dumps(self.rows, indent=2) + "\n")


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def read_lines(path):
    # Not splitlines(): texts hold line separators of their own.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
