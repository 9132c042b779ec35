// The newest responses of a run: every token marked by how far student and teacher disagree about it, with the
// candidates of the token one has chosen. Marks differ in colour and in underline; arrow keys move the choice.
import {el, ask, count, percent} from '/dom.js';

const ratioOf = ([, student, teacher]) => student === null || teacher === null ? null : teacher - student;

function ratioText(ratio, mark) {
  if (ratio === null) return 'no teacher here';
  const word = !mark ? 'they agree' : ratio < 0 ? 'the teacher finds it less likely' : 'the teacher finds it more likely';
  return `log-ratio ${ratio >= 0 ? '+' : '−'}${Math.abs(ratio).toFixed(2)}, ${word}`;
}

const shownText = text => text === '' ? '·' : text.replace(/\n/g, '↵\n');

function details(token) {
  const [text, student, teacher, candidates, mark] = token;
  const rows = candidates.map(candidate => el('tr', {class: candidate[0] === text ? 'chosen' : null},
    el('td', {}, el('code', {}, shownText(candidate[0]))), el('td', {}, percent(candidate[1])), el('td', {}, percent(candidate[2]))));
  return [
    el('p', {}, el('code', {}, shownText(text)), ` student ${percent(student)}, teacher ${percent(teacher)}; ${ratioText(ratioOf(token), mark)}`),
    rows.length ? el('table', {}, el('thead', {}, el('tr', {}, ['candidate', 'student', 'teacher'].map(head => el('th', {scope: 'col'}, head)))), el('tbody', {}, rows)) : null,
  ].filter(Boolean);
}

function tokensOf(response) {
  const panel = el('div', {class: 'candidates', role: 'status', 'aria-live': 'polite'});
  const spans = response.tokens.map(token => el('span', {class: 'token ' + token[4], title: `student ${percent(token[1])}, teacher ${percent(token[2])}`}, shownText(token[0])));
  let chosen = -1;
  function choose(index) {
    if (index < 0 || index >= spans.length) return;
    if (chosen >= 0) spans[chosen].classList.remove('chosen');
    chosen = index;
    spans[index].classList.add('chosen');
    panel.replaceChildren(...details(response.tokens[index]));
  }
  const move = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10};
  const text = el('div', {class: 'tokens', tabindex: 0, role: 'group', 'aria-label': 'tokens of the response; arrow keys choose one',
    onclick: event => choose(spans.indexOf(event.target.closest('.token'))),
    onkeydown: event => {
      if (event.key === 'Home') choose(0);
      else if (event.key === 'End') choose(spans.length - 1);
      else if (move[event.key]) choose(chosen < 0 ? 0 : Math.min(spans.length - 1, Math.max(0, chosen + move[event.key])));
      else return;
      event.preventDefault();
    }}, spans, response.length > spans.length ? el('span', {class: 'muted'}, ` … ${count(response.length - spans.length)} more tokens`) : null);
  return [text, panel];
}

function article(response) {
  const verdict = response.correct === null ? 'no answer known' : response.correct ? 'right' : 'wrong';
  const facts = [`iteration ${response.iteration}`, `query ${response.query}`, `sample ${response.sample}`, verdict,
    `${count(response.length)} tokens`, response.finish === 'eos' ? 'ended' : 'cut at the limit'];
  return el('article', {class: response.correct ? 'right' : response.correct === false ? 'wrong' : null},
    el('p', {class: 'muted facts-line'}, facts.join(' · ')),
    response.question ? el('p', {class: 'question'}, response.question) : null,
    response.answer ? el('p', {class: 'muted'}, 'expected: ', el('code', {}, response.answer)) : null,
    tokensOf(response));
}

const selection = (label, name, values) => el('label', {}, label + ' ',
  el('select', {name}, values.map(([value, text]) => el('option', {value}, text))));

export function responsesView(id) {
  const list = el('div'), note = el('p', {class: 'muted', role: 'status'});
  const form = el('form', {class: 'tools', oninput: () => ask_soon(), onsubmit: event => event.preventDefault()},
    el('label', {}, 'search ', el('input', {type: 'search', name: 'text', placeholder: 'query, question or response'})),
    selection('answer', 'correct', [['', 'any'], ['yes', 'right'], ['no', 'wrong']]),
    selection('finish', 'finish', [['', 'any'], ['eos', 'ended'], ['length', 'cut']]),
    el('label', {}, 'tokens from ', el('input', {type: 'number', name: 'min', min: 0})),
    el('label', {}, 'to ', el('input', {type: 'number', name: 'max', min: 0})),
    el('label', {}, 'iteration ', el('input', {type: 'number', name: 'iteration', min: 1})),
    el('label', {}, el('input', {type: 'checkbox', name: 'follow', checked: true}), ' follow the newest'));
  let newest = null, shown = null, timer = 0, asked = 0;

  async function show() {
    if (asked < 0) return;
    const number = ++asked, stamp = newest;
    const wishes = [...new FormData(form)].filter(([name, value]) => name !== 'follow' && value !== '');
    try {
      const answer = await ask('/api/responses', [['run', id], ...wishes]);
      if (number !== asked) return;
      shown = stamp;
      if (!legend.firstChild) showLegend(answer.steps);
      list.replaceChildren(...answer.problems.map(problem => el('p', {class: 'alarm'}, problem)), ...answer.responses.map(article));
      note.textContent = answer.num_read === 0 ? 'None yet (metrics.samples sets how many a run keeps).' :
        `${answer.responses.length} of ${answer.num_read} read, newest first.`;
    } catch (error) {
      if (number !== asked) return;
      note.textContent = error.message;
      ask_soon(1000);
    }
  }
  function ask_soon(milliseconds = 250) {
    clearTimeout(timer);
    timer = setTimeout(show, milliseconds);
  }

  const legend = el('p', {class: 'muted legend'});
  function showLegend(steps) {
    const scale = (kind, sign) => steps.flatMap((step, i) => [' ', el('span', {class: 'token ' + kind + (i + 1)}, sign + step)]);
    legend.replaceChildren('A marked token is one that the teacher finds less likely than the student does (solid line, log-ratio from', ...scale('less', '−'),
      ') or more likely (dotted line, from', ...scale('more', '+'), '). Choose one to see its candidates.');
  }
  // Somebody who reads a token is not interrupted, but gets the newest when done.
  function update(stamp) {
    newest = stamp;
    const isReading = list.contains(document.activeElement);
    if (stamp !== shown && (shown === null || (form.elements.follow.checked && !isReading))) ask_soon();
  }
  list.addEventListener('focusout', () => setTimeout(() => update(newest)));
  return {element: el('section', {}, el('h2', {}, 'Responses'), form, note, legend, list), update, close() { asked = -1; clearTimeout(timer); }};
}
