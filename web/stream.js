// The runs as the server tells of them: one event stream for the page, opened again whenever it breaks.

const runs = new Map();
const listeners = new Set();
let folder = '', connection = 'connecting', silent = 0;

export const model = {
  get runs() { return runs; },
  get folder() { return folder; },
  get connection() { return connection; },
};

export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell() {
  for (const listener of [...listeners]) listener();
}

function take(changes) {
  folder = changes.folder;
  for (const run of changes.runs) runs.set(run.id, run);
  if (changes.ids) {
    const sorted = changes.ids.map(id => [id, runs.get(id)]).filter(([, run]) => run);
    runs.clear();
    for (const [id, run] of sorted) runs.set(id, run);
  }
}

function hear(source) {
  // The server gives a sign of life every fifteen seconds; a stream that is quiet for longer is gone.
  clearTimeout(silent);
  silent = setTimeout(() => { source.close(); lose(); }, 40000);
}

function lose() {
  clearTimeout(silent);
  if (connection !== 'lost') {
    connection = 'lost';
    tell();
  }
  setTimeout(connect, 1000);
}

function connect() {
  const source = new EventSource('/events');
  source.onopen = () => hear(source);
  source.onmessage = event => {
    hear(source);
    connection = 'live';
    take(JSON.parse(event.data));
    tell();
  };
  source.onerror = () => {
    source.close();
    lose();
  };
}

connect();
