// Which view the address asks for: #/ the list, #/run?run=ID one run, with several run= an overlay,
// #/study?study=ID a study's graph.
import {model, listen} from '/stream.js';
import {listView} from '/list.js';
import {runView} from '/run.js';
import {studyView} from '/study.js';

const content = document.getElementById('content');
let view = null;

function route() {
  const hash = location.hash || '#/';
  if (!hash.startsWith('#/')) return;
  const [path, query] = hash.slice(1).split('?');
  const asked = new URLSearchParams(query || ''), ids = asked.getAll('run').slice(0, 8);
  if (view) view.close();
  view = path === '/run' && ids.length ? runView(ids) : path === '/study' && asked.has('study') ? studyView(asked.get('study')) : listView();
  content.replaceChildren(view.element);
  view.update();
  content.focus({preventScroll: true});
  scrollTo(0, 0);
}

function update() {
  document.getElementById('folder').textContent = model.folder;
  const state = document.getElementById('connection');
  const text = {connecting: 'connecting …', live: 'live', lost: 'connection lost, trying again …'}[model.connection];
  if (state.textContent !== text) state.textContent = text;
  state.className = model.connection;
  if (view) view.update();
}

addEventListener('hashchange', route);
listen(update);
route();
