// One run, or several overlaid: where each stands, curves that grow, and of one run responses and settings.
import {el, ask, brief, count, drawing, duration, following} from '/dom.js';
import {model} from '/stream.js';
import {leftText, progressCell, stageText, stateMark} from '/list.js';
import {responsesView} from '/responses.js';

function problemList(problems) {
  return (problems || []).map(problem => el('p', {class: 'alarm'}, problem));
}

function chartsView() {
  const element = el('div'), figures = new Map();
  function figure(data) {
    const known = figures.get(data.id) || {element: el('figure', {'data-id': data.id}), svg: ''};
    figures.set(data.id, known);
    if (known.svg !== data.svg) {
      known.svg = data.svg;
      known.element.replaceChildren(...[el('h3', {}, data.title), drawing(data.svg), el('figcaption', {}, data.caption)].filter(Boolean));
    }
    return known.element;
  }
  return {
    element,
    show(answer) {
      const groups = (answer.groups || []).map(group => el('section', {}, el('h2', {}, group.heading),
        group.introduction ? el('p', {class: 'muted'}, group.introduction) : null, el('div', {class: 'figures'}, group.figures.map(figure))));
      const empty = groups.length || (answer.problems || []).length ? [] : [el('p', {class: 'muted'}, 'No iteration has ended yet; curves begin with the first.')];
      element.replaceChildren(...problemList(answer.problems), ...groups, ...empty);
    },
  };
}

function heading(id) {
  const state = el('span'), stage = el('span', {class: 'stage'}), bar = el('span', {class: 'bar'}), facts = el('dl', {class: 'facts'});
  const alarms = el('div', {role: 'status', 'aria-live': 'polite'}), title = el('h1', {}, id);
  const element = el('section', {class: 'status'}, title, el('p', {class: 'line'}, state, bar, stage), facts, alarms);
  let shownAlarms = '';
  return {
    element,
    update(run) {
      if (!run) {
        stage.textContent = model.connection === 'live' ? 'There is no such run below this folder.' : 'Looking …';
        return;
      }
      title.textContent = run.name;
      state.replaceChildren(stateMark(run.state));
      bar.replaceChildren(...progressCell(run));
      stage.textContent = stageText(run);
      const last = run.last || {}, progress = run.progress, alarmTexts = JSON.stringify(last.alarms || []);
      const all = [
        ['time left', leftText(run)], ['loss', brief(last.loss)], ['KL', brief(last.kl)],
        ['D / V', brief(last.ratio)], ['τ', last.tau ? String(last.tau) : '–'], ['source', last.source || '–'],
        ['mean length', typeof last.length === 'number' ? count(last.length) : '–'],
        ['cut', typeof last.cut === 'number' ? (100 * last.cut).toFixed(1) + ' %' : '–'],
        ['process', progress ? `${progress.pid} on ${progress.host}` : '–'],
        ['last heard of', progress ? duration(Date.now() / 1000 - progress.heartbeat) + ' ago' : '–'],
      ];
      facts.replaceChildren(...all.filter(([, value]) => value).map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
      if (alarmTexts === shownAlarms) return;
      shownAlarms = alarmTexts;
      alarms.replaceChildren(...problemList(last.alarms));
    },
  };
}

function settingsView(id) {
  const text = el('pre', {tabindex: 0, 'aria-label': 'settings of the run'});
  return el('details', {ontoggle: async event => {
    if (!event.target.open || text.textContent) return;
    try { text.textContent = (await ask('/api/settings', [['run', id]])).text; } catch (error) { text.textContent = error.message; }
  }}, el('summary', {}, 'Settings'), text);
}

export function runView(ids) {
  const headings = ids.map(id => [id, heading(id)]), charts = chartsView();
  const curves = following(() => ask('/api/charts', ids.map(id => ['run', id])), charts.show);
  const responses = ids.length === 1 ? responsesView(ids[0]) : null;
  const element = el('div', {class: ids.length > 1 ? 'overlaid' : ''}, el('div', {class: 'statuses'}, headings.map(([, part]) => part.element)),
    charts.element, responses ? [responses.element, settingsView(ids[0])] : []);
  return {
    element,
    update() {
      for (const [id, part] of headings) part.update(model.runs.get(id));
      const known = ids.map(id => model.runs.get(id));
      if (known.some(run => !run) || model.connection !== 'live') return;
      curves.update(known.map(run => run.metrics).join('|'));
      if (responses) responses.update(known[0].samples);
    },
    close() {
      curves.close();
      if (responses) responses.close();
    },
  };
}
