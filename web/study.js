// A study as a graph: columns from what needs nothing to what needs most, the state of every node by colour, line
// and sign; the same as a table below, which says in words what the drawing shows.
import {el, ask, following} from '/dom.js';
import {model} from '/stream.js';
import {runLink, studyBar, studyCounts} from '/list.js';

const signs = {done: '✓', working: '▶', dead: '✕', open: '○'};
const width = 210, height = 46, columnGap = 58, rowGap = 14, letters = 27;

function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

const shortened = text => text.length > letters ? text.slice(0, letters - 1) + '…' : text;

// Column: the longest way from a node without needs. Row: near the mean of what it needs, so that lines stay short.
function places(nodes) {
  const column = [], row = [], columns = [];
  nodes.forEach((node, i) => {
    column[i] = node.needs.length ? 1 + Math.max(...node.needs.map(need => column[need])) : 0;
    (columns[column[i]] = columns[column[i]] || []).push(i);
  });
  columns.forEach(members => {
    const wish = i => nodes[i].needs.length ? nodes[i].needs.reduce((sum, need) => sum + row[need], 0) / nodes[i].needs.length : -1;
    members.map(i => [wish(i), i]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).forEach(([, i], at) => { row[i] = at; });
  });
  return {column, row, numColumns: columns.length, numRows: Math.max(0, ...columns.map(members => members.length))};
}

function graph(nodes) {
  const {column, row, numColumns, numRows} = places(nodes);
  const x = i => 2 + column[i] * (width + columnGap), y = i => 2 + row[i] * (height + rowGap);
  const lines = nodes.flatMap((node, i) => node.needs.map(need => {
    const [x0, y0, x1, y1] = [x(need) + width, y(need) + height / 2, x(i), y(i) + height / 2], bend = columnGap / 2;
    return svg('path', {class: 'need', d: `M${x0},${y0} C${x0 + bend},${y0} ${x1 - bend},${y1} ${x1},${y1}`});
  }));
  const boxes = nodes.map((node, i) => svg('g', {class: 'node ' + node.state, transform: `translate(${x(i)},${y(i)})`},
    svg('title', {}, `${node.label}: ${node.state}${node.worker ? ', ' + node.worker : ''}`),
    svg('rect', {width, height, rx: 4}),
    svg('text', {x: 10, y: 19, class: 'kind'}, `${signs[node.state] || ''} ${node.kind}, ${node.state}`),
    svg('text', {x: 10, y: 36}, shortened(node.label))));
  const [w, h] = [numColumns * (width + columnGap) - columnGap + 4, numRows * (height + rowGap) - rowGap + 4];
  return svg('svg', {class: 'graph', role: 'img', width: w, height: h, viewBox: `0 0 ${w} ${h}`},
    svg('title', {}, 'The nodes of the study and what each needs'), svg('desc', {}, `${nodes.length} nodes; the table below lists them with their states.`), ...lines, ...boxes);
}

function table(nodes) {
  const rows = nodes.map(node => el('tr', {}, el('td', {}, el('span', {class: 'state ' + node.state}, node.state)), el('td', {}, node.kind),
    el('th', {scope: 'row'}, node.run ? el('a', {href: runLink([node.run])}, node.label) : node.label),
    el('td', {class: 'muted'}, node.worker)));
  return el('table', {}, el('thead', {}, el('tr', {}, ['state', 'kind', 'node', 'made by'].map(head => el('th', {scope: 'col'}, head)))), el('tbody', {}, rows));
}

export function studyView(id) {
  const title = el('h1', {}, id), line = el('p', {class: 'line'}), drawing = el('div', {class: 'scroll', role: 'region', tabindex: 0, 'aria-label': 'graph'});
  const list = el('div', {class: 'scroll', role: 'region', tabindex: 0, 'aria-label': 'nodes'}), problem = el('p', {class: 'muted', role: 'status'});
  const nodes = following(() => ask('/api/study', [['study', id]]), answer => {
    problem.textContent = (answer.problems || []).join(' ');
    if (!answer.nodes) return;
    drawing.replaceChildren(graph(answer.nodes));
    list.replaceChildren(table(answer.nodes));
  });
  return {
    element: el('div', {}, title, line, problem, drawing, el('h2', {}, 'Nodes'), list),
    update() {
      const study = model.studies.get(id);
      if (!study) {
        problem.textContent = model.connection === 'live' ? 'There is no such study below this folder.' : 'Looking …';
        return;
      }
      title.textContent = study.name;
      line.replaceChildren(...[studyBar(study), el('span', {class: 'muted'}, studyCounts(study))].filter(Boolean));
      if (model.connection === 'live') nodes.update(study.version);
    },
    close() { nodes.close(); },
  };
}
