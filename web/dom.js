// Elements from data. Text only ever becomes text nodes and attribute values that cannot run anything, so
// nothing a model, a data set or a file name holds is taken for markup.

export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

// A drawing of the server's own figure code. A text that is no drawing gives nothing.
export function drawing(text) {
  const parsed = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
  return parsed.localName === 'svg' ? document.importNode(parsed, true) : null;
}

export async function ask(path, parameters = []) {
  const query = new URLSearchParams(parameters).toString();
  const answer = await fetch(path + (query ? '?' + query : ''));
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error || String(answer.status));
  return body;
}

// Asks whenever `stamp` is another one than what is shown; never twice at the same time, and again for a stamp that came
// meanwhile or after a failure.
export function following(fetchOne, show) {
  let shown = null, wanted = null, busy = false, closed = false, again = 0;
  async function update(stamp) {
    wanted = stamp;
    if (busy || closed) return;
    clearTimeout(again);
    busy = true;
    while (!closed && wanted !== shown) {
      const asked = wanted;
      try {
        const answer = await fetchOne();
        if (!closed) show(answer);
        shown = asked;
      } catch (error) {
        if (!closed) show({problems: [error.message]});
        again = setTimeout(() => update(wanted), 1000);
        break;
      }
    }
    busy = false;
  }
  return {update, close() { closed = true; clearTimeout(again); }};
}

export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds)), two = number => String(number).padStart(2, '0');
  if (whole < 3600) return `${two(Math.floor(whole / 60))}:${two(whole % 60)}`;
  if (whole < 48 * 3600) return `${Math.floor(whole / 3600)} h ${two(Math.floor(whole / 60) % 60)} min`;
  return `${(whole / 86400).toFixed(1)} days`;
}

export const count = value => Number(value).toLocaleString('en', {maximumFractionDigits: value < 100 ? 1 : 0});

export function brief(value) {
  if (typeof value !== 'number') return '–';
  return value.toPrecision(3).replace('-', '−');
}

export function percent(logprob) {
  if (typeof logprob !== 'number') return '–';
  const share = 100 * Math.exp(logprob);
  return (share >= 10 ? share.toFixed(0) : share >= 0.1 ? share.toFixed(1) : '< 0.1') + ' %';
}
