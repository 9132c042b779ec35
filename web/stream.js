// The runs and studies as the server tells of them: one event stream for the page, opened again whenever it breaks.

const runs = new Map(), studies = new Map();
const listeners = new Set();
let folder = '', connection = 'connecting', silent = 0;

export const model = {
  get runs() { return runs; },
  get studies() { return studies; },
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

// What came or changed; with `ids`, in their order and nothing else.
function merge(known, changed, ids) {
  for (const one of changed) known.set(one.id, one);
  if (!ids) return;
  const sorted = ids.map(id => [id, known.get(id)]).filter(([, one]) => one);
  known.clear();
  for (const [id, one] of sorted) known.set(id, one);
}

function take(changes) {
  folder = changes.folder;
  merge(runs, changes.runs, changes.ids);
  merge(studies, changes.studies, changes.study_ids);
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

let current = null;

function connect() {
  const source = current = new EventSource('/events');
  source.onopen = () => hear(source);
  source.addEventListener('alive', () => hear(source));
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

// A page that a browser keeps behind the shown one holds no connection.
addEventListener('pagehide', () => current.close());
addEventListener('pageshow', event => { if (event.persisted) connect(); });
connect();
