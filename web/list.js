// All runs and studies below the folder: state, progress, time left, newest numbers, alarms; several can be overlaid.
import {el, brief, count, duration} from '/dom.js';
import {model} from '/stream.js';

export const stateTexts = {
  running: 'running', stopped: 'stopped', failed: 'failed', dead: 'dead', silent: 'silent', finished: 'finished', unknown: 'no news',
};
const stateNotes = {
  stopped: 'stopped on request; ropd resume goes on', failed: 'ended by an error', dead: 'its process is gone',
  silent: 'runs on another machine and has not been heard of for minutes', unknown: 'there is no progress.json',
};

export const runLink = ids => '#/run?' + new URLSearchParams(ids.map(id => ['run', id]));

export function stateMark(state) {
  return el('span', {class: 'state ' + state, title: stateNotes[state]}, stateTexts[state] || state);
}

export function progressCell(run) {
  const progress = run.progress;
  if (!progress || !progress.iterations) return [run.last ? `iteration ${run.last.iteration}` : '–'];
  // The iteration in progress is counted by its stage, so that the bar moves.
  const begun = Math.max(0, progress.iteration - 1) + (progress.total ? 0.9 * progress.done / progress.total : 0);
  const done = run.state === 'finished' ? progress.iterations : begun;
  return [
    el('progress', {max: progress.iterations, value: Math.min(done, progress.iterations), 'aria-label': 'progress of the run'}),
    el('span', {class: 'number'}, `${run.state === 'finished' ? progress.iterations : progress.iteration} / ${progress.iterations}`),
  ];
}

export function stageText(run) {
  const progress = run.progress;
  if (run.state !== 'running' || !progress || !progress.stage) return '';
  const rate = progress.rate > 0 ? `, ${count(progress.rate)} ${progress.unit}/s` : '';
  return `${progress.stage} ${count(progress.done)}${progress.total ? ' / ' + count(progress.total) : ''}${rate}`;
}

export const leftText = run =>
  run.state === 'running' && run.progress && run.progress.left !== null ? duration(run.progress.left) : '';

function row(chosen, changed) {
  const box = el('input', {type: 'checkbox', onchange: event => changed(event.target.checked)});
  const link = el('a', {}), cells = Array.from({length: 8}, () => el('td'));
  const element = el('tr', {}, el('td', {}, box), el('th', {scope: 'row'}, link), cells);
  let shown = '';
  return {
    element, box,
    update(run) {
      const text = JSON.stringify(run);
      if (shown === text) return;
      shown = text;
      link.textContent = run.name;
      link.setAttribute('href', runLink([run.id]));
      box.setAttribute('aria-label', 'overlay ' + run.name);
      const last = run.last || {};
      const contents = [
        [stateMark(run.state)], progressCell(run), [stageText(run)], [leftText(run)], [brief(last.loss)], [brief(last.kl)],
        [brief(last.ratio) + (last.tau ? `, τ = ${last.tau}` : '')],
        (last.alarms || []).map(alarm => el('span', {class: 'alarm'}, alarm)),
      ];
      contents.forEach((content, i) => cells[i].replaceChildren(...content));
    },
  };
}

export const studyLink = id => '#/study?' + new URLSearchParams([['study', id]]);

export function studyCounts(study) {
  if (!study.readable) return 'cannot be read';
  const open = study.nodes - study.done - study.working - study.dead;
  return [`${study.done} of ${study.nodes} done`, study.working ? `${study.working} working` : '', study.dead ? `${study.dead} dead` : '',
    open ? `${open} open` : '', study.complete ? '' : 'more appear when τ is known'].filter(Boolean).join(', ');
}

export function studyBar(study) {
  return study.nodes ? el('progress', {max: study.nodes, value: study.done, 'aria-label': 'progress of the study'}) : null;
}

function studiesView() {
  const element = el('div');
  let shown = '';
  return {
    element,
    update() {
      const text = JSON.stringify([...model.studies.values()]);
      if (shown === text) return;
      shown = text;
      element.replaceChildren(...(model.studies.size ? [el('h2', {}, 'Studies'), el('ul', {class: 'studies'}, [...model.studies.values()].map(study =>
        el('li', {}, el('a', {href: studyLink(study.id)}, study.name), ' ', studyBar(study), el('span', {class: 'muted'}, studyCounts(study)))))] : []));
    },
  };
}

export function listView() {
  const rows = new Map(), chosen = new Set();
  const overlay = el('a', {class: 'button', 'aria-disabled': 'true'}, 'Overlay the chosen runs');
  const filter = el('input', {type: 'search', placeholder: 'part of a name', 'aria-label': 'show runs whose name has', oninput: update});
  const body = el('tbody');
  const note = el('p', {class: 'muted'});
  const heads = ['overlay', 'run', 'state', 'iterations', 'stage', 'time left', 'loss', 'KL', 'D / V', 'alarms'];
  const table = el('div', {class: 'scroll', role: 'region', tabindex: 0, 'aria-label': 'runs'},
    el('table', {class: 'runs'}, el('thead', {}, el('tr', {}, heads.map(head => el('th', {scope: 'col'}, head)))), body));

  function choose(id, isChosen) {
    if (isChosen) chosen.add(id); else chosen.delete(id);
    const isReady = chosen.size >= 2 && chosen.size <= 8;
    overlay.setAttribute('aria-disabled', String(!isReady));
    if (isReady) overlay.setAttribute('href', runLink([...chosen])); else overlay.removeAttribute('href');
  }

  function update() {
    studies.update();
    const wanted = filter.value.toLowerCase();
    const shown = [...model.runs.values()].filter(run => run.name.toLowerCase().includes(wanted));
    for (const id of [...rows.keys()].filter(id => !model.runs.has(id))) {
      choose(id, false);
      rows.delete(id);
    }
    const elements = shown.map(run => {
      if (!rows.has(run.id)) rows.set(run.id, row(chosen, isChosen => choose(run.id, isChosen)));
      rows.get(run.id).update(run);
      return rows.get(run.id).element;
    });
    const isSame = elements.length === body.children.length && elements.every((element, i) => element === body.children[i]);
    if (!isSame) body.replaceChildren(...elements);
    const working = shown.filter(run => run.state === 'running').length;
    note.textContent = model.runs.size ? `${shown.length} runs, ${working} of them running` :
      model.connection === 'connecting' ? 'Looking …' : 'No runs below this folder yet.';
  }

  const studies = studiesView();
  const element = el('div', {}, el('h1', {}, 'Runs'), note, el('div', {class: 'tools'}, filter, overlay), table, studies.element);
  return {element, update, close() {}};
}
