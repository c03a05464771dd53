'use strict';
/* A table of samples with sort, filter and search, keys, and a panel for one sample: the report and the comparison use
   it. Text only enters the page as text nodes. */
const SVG = 'http://www.w3.org/2000/svg';
const find = (query, within = document) => within.querySelector(query);
const all = (query, within = document) => [...within.querySelectorAll(query)];
const data = JSON.parse(find('#rows').textContent), blocks = JSON.parse(find('#blocks').textContent);
const metrics = data.metrics, total = data.id.length;
const phone = matchMedia('(max-width: 720px)');

function make(name, given = {}, ...children) {
  const [tag, ...classes] = name.split('.'), made = document.createElement(tag);
  if (classes.length) made.className = classes.join(' ');
  for (const [key, value] of Object.entries(given)) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(key, value === true ? '' : value);
  }
  made.append(...children.flat(9).filter(each => each !== null && each !== undefined && each !== false));
  return made;
}
function shape(tag, given, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, value);
  made.append(...children); return made;
}
const breakable = name => name.split(/(?<=[_(])/).flatMap(part => [part, make('wbr')]);
const text = (value, name = 'span.t') => make(name, { dir: 'auto' }, value ?? '');
const scored = value => typeof value === 'number';
const chip = each => make('span.chip.' + each.tone, {}, make('span', { 'aria-hidden': 'true' }, each.glyph), ' ' + each.name);
const count = (number, thing) => `${number.toLocaleString('en')} ${thing}${number === 1 ? '' : 's'}`;
function quality(at, value) {   // 0 worst, 1 best; null without a finite range
  const [low, high] = metrics[at].span;
  if (low === null || high === null || high <= low) return null;
  const part = Math.min(1, Math.max(0, (value - low) / (high - low)));
  return metrics[at].up ? part : 1 - part;
}
function meter(at, value) {
  const good = quality(at, value);
  if (good === null) return null;
  const wide = 32 * (metrics[at].up ? good : 1 - good);
  return shape('svg', { width: 32, height: 6, 'aria-hidden': 'true' }, shape('rect', { class: 'track', y: 2, width: 32, height: 2 }),
    shape('rect', { class: !metrics[at].verdict ? 'bar other' : good < .5 ? 'bar lo' : 'bar', width: Math.max(1, wide), height: 6 }));
}
function shown(at, value) {
  if (scored(value)) return make('span.val', {}, meter(at, value), value.toFixed(2));
  return value === false ? make('span.fa', {}, 'failed') : make('span.un', {}, 'undefined');
}
const unpacked = new Map();
function block(kind, at) {   // one block of details or passages, unpacked once
  const key = kind + at;
  if (!unpacked.has(key)) unpacked.set(key, (async () => {
    const bytes = Uint8Array.from(atob(blocks[kind][at]), each => each.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'))).json();
  })());
  return unpacked.get(key);
}
const item = async (kind, i) => (await block(kind, Math.floor(i / blocks.size)))[i % blocks.size];
const last = value => value === false ? 2 : value === null ? 1 : 0;
function ranked(values, direction) {   // failed and undefined last, in both directions
  return (a, b) => last(values[a]) - last(values[b]) || direction * (values[a] - values[b]) || a - b;
}
function toast(message) { const shownOnce = make('div.toast', { role: 'status' }, message); document.body.append(shownOnce); setTimeout(() => shownOnce.remove(), 2500); }

/* tables as Markdown, figures as SVG */
async function copied(content, message) {
  try { await navigator.clipboard.writeText(content); }
  catch { const area = make('textarea', {}, content); document.body.append(area); area.select(); document.execCommand('copy'); area.remove(); }
  toast(message);
}
function words(cell) {   // its text on one line; texts of different elements get a space between them
  const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT); let all = '', last = null;
  while (walk.nextNode()) { const { parentNode, data } = walk.currentNode; if (!parentNode.closest('.lab')) { all += (parentNode === last ? '' : ' ') + data; last = parentNode; } }
  return all.replace(/\s+/g, ' ').trim();
}
function markdown(rows) {   // rows of cells, the head first; a column without a text below its head is left out
  const cells = rows.map(row => row.flatMap(cell => [words(cell).replace(/[\\|<]/g, '\\$&'), ...Array((cell.colSpan ?? 1) - 1).fill('')]));
  const full = cells[0].map((_, at) => cells.slice(1).some(row => row[at])), line = row => `| ${row.filter((_, at) => full[at]).join(' | ')} |`;
  return [line(cells[0]), line(full.map(() => '---')), ...cells.slice(1).map(line), ''].join('\n');
}
function figure(drawings) {   // drawings below each other, with their labels and the colours of the page
  let y = 8;
  const style = (each, name) => getComputedStyle(each).getPropertyValue(name), ink = style(document.body, 'color');
  const parts = drawings.map(drawing => {
    const drawn = drawing.cloneNode(true), { width, height } = drawing.getBoundingClientRect(), own = all('*', drawing);
    all('*', drawn).forEach((each, n) => { for (const name of ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'vector-effect']) each.setAttribute(name, style(own[n], name)); });
    for (const [key, value] of Object.entries({ x: 12, y: y + 20, width, height })) drawn.setAttribute(key, value);
    const label = shape('text', { x: 12, y: y + 14, fill: ink }, [...drawing.closest('tr, .metric').children].slice(0, 3).map(words).join('  '));
    y += height + 28; return [label, drawn];
  });
  const size = { width: 760, height: y, viewBox: `0 0 760 ${y}`, 'font-family': 'system-ui, sans-serif', 'font-size': 13 };
  return new XMLSerializer().serializeToString(shape('svg', size, shape('rect', { width: 760, height: y, fill: style(document.body, 'background-color') }), ...parts.flat()));
}
function save(name, content) {
  const link = make('a', { download: name.replace(/[^\p{L}\p{N}]+/gu, '-') + '.svg', href: URL.createObjectURL(new Blob([content], { type: 'image/svg+xml' })) });
  link.click(); setTimeout(() => URL.revokeObjectURL(link.href), 9000);
}
const copyButton = rows => make('button.btn', { type: 'button', title: 'Copy this table as Markdown', onclick: () => copied(markdown(rows()), 'Table copied') }, 'Copy table');
for (const bar of all('main section > .sec')) {
  const section = bar.parentNode, cards = all('.metric', section), drawings = all('svg[role=img]', section);
  const rows = () => {
    if (cards.length) return [['Metric', 'Mean', 'Interval', 'Scores'].map(each => make('th', {}, each)), ...cards.map(card => all(':scope > span', card).slice(0, 4))];
    const shownOne = all('table', section).find(each => each.offsetParent), found = [...shownOne.rows].map(each => [...each.cells]);
    return shownOne.tHead ? found : [found[0].map(() => make('th')), ...found];
  };
  if (cards.length || find('table', section)) bar.append(copyButton(rows));
  if (drawings.length) bar.append(make('button.btn', { type: 'button', title: 'Save these figures as one SVG file', onclick: () => save(`${document.title} ${find('h2', bar).textContent}`, figure(drawings)) }, 'Save figure'));
}

/* `page`: filters [{ key, label, none, options }], matches(i, state), sorts, order(state), heads(state), row(i, state),
   inside(i, place, count), note, applied(state). Returns what the page calls. */
function table(page) {
  const drawer = find('#drawer'), places = new Map();
  for (let i = total - 1; i >= 0; i--) places.set(data.id[i], i);
  const initial = { text: '', sort: '', up: true, ...Object.fromEntries(page.filters.map(each => [each.key, each.none])) };
  const state = { ...initial };
  let view = [], open = -1, first = 0, end = -1;
  const choice = (label, options, pick) => make('select', { 'aria-label': label, onchange: e => pick(e.target.value) }, options.map(([value, name]) => make('option', { value }, name)));
  const search = make('input', { type: 'search', placeholder: 'Search text or id', 'aria-label': 'Search samples', oninput: e => { state.text = e.target.value; apply(); } });
  const filters = page.filters.map(each => choice(each.label, each.options, value => { state[each.key] = typeof each.none === 'number' ? +value : value; apply(); }));
  const bySort = choice('Sort', page.sorts, value => { state.sort = value; state.up = true; apply(); });
  const amount = make('span.count', { role: 'status' });
  const clear = make('button.btn', { type: 'button', onclick: reset }, 'Clear');
  const tools = make('div.tools', {}, search, filters, bySort, clear, amount, copyButton(() => [[...head.rows[0].cells], ...view.map((_, place) => [...row(place).cells])]), make('button.btn.keysbtn', { type: 'button', 'aria-label': 'Keys', onclick: () => keys.showModal() }, make('kbd', {}, '?')));
  const head = make('thead'), body = make('tbody'), grid = make('table.grid', { 'aria-label': 'Samples' }, head, body);
  const above = make('tr.pad', { 'aria-hidden': 'true' }, make('td')), below = make('tr.pad', { 'aria-hidden': 'true' }, make('td'));
  const empty = make('div.empty', {}, make('p', {}, 'No sample matches.'), make('button.btn', { type: 'button', onclick: reset }, 'Show all'));
  const note = total < data.total ? make('p.soft.small', {}, page.note) : null;
  find('#samples').append(...[note, tools, grid, empty].filter(Boolean));

  function reset() { Object.assign(state, initial); apply(); }
  function apply() {
    const wanted = state.text.trim().toLowerCase(), order = page.order(state);
    view = []; for (let i = 0; i < total; i++) if ((!wanted || page.words(i).includes(wanted)) && page.matches(i, state)) view.push(i);
    if (order) view.sort(order);
    amount.textContent = view.length === total ? count(total, 'sample') : `${view.length.toLocaleString('en')} of ${count(total, 'sample')}`;
    clear.hidden = Object.keys(initial).every(key => state[key] === initial[key]); empty.hidden = view.length > 0; grid.hidden = !view.length;
    grid.setAttribute('aria-rowcount', view.length + 1);
    if (search.value !== state.text) search.value = state.text;
    page.filters.forEach((each, n) => { filters[n].value = state[each.key]; });
    bySort.value = state.sort;
    page.applied(state); heading(); draw(true);
  }
  function heading() {
    head.replaceChildren(make('tr', {}, page.heads(state).filter(Boolean).map(([key, label, name, title]) => {
      if (key === null) return make('th' + name, { scope: 'col', title }, make('span', {}, breakable(label)));
      const on = state.sort === key && key !== '';
      const turn = () => { if (state.sort === key) state.up = !state.up; else { state.sort = key; state.up = true; } apply(); };
      return make('th' + name, { scope: 'col', title, 'aria-sort': on ? (state.up ? 'ascending' : 'descending') : null }, make('button', { type: 'button', onclick: turn }, breakable(label), on ? (state.up ? ' ↑' : ' ↓') : ''));
    })));
    for (const each of [above, below]) each.firstChild.colSpan = all('th', head).filter(th => getComputedStyle(th).display !== 'none').length;
  }
  const link = (i, under) => make('td.c-q', {}, make('a.q', { href: '#sample=' + encodeURIComponent(data.id[i]) }, text(data.q[i] || data.id[i])), make('span.sub', {}, text(under)));
  function row(place) {
    const i = view[place];
    return make('tr', { 'data-place': place, 'aria-rowindex': place + 2, 'aria-current': i === open ? 'true' : null }, page.row(i, state, link));
  }
  function draw(redraw) {   // only the rows in sight and a few more are in the page
    const tall = phone.matches ? 92 : 44, top = body.getBoundingClientRect().top;
    const from = Math.max(0, Math.min(view.length - 1, Math.floor(-top / tall / 8) * 8 - 8)), to = Math.min(view.length, Math.ceil((innerHeight - top) / tall / 8) * 8 + 8);
    if (!redraw && from === first && to === end) return;
    const focused = body.contains(document.activeElement) ? document.activeElement.closest('tr')?.dataset.place : undefined;
    first = from; end = Math.max(from, to);
    const rows = []; for (let place = first; place < end; place++) rows.push(row(place));
    above.firstChild.style.height = first * tall + 'px'; below.firstChild.style.height = (view.length - end) * tall + 'px';
    above.hidden = !first; below.hidden = end >= view.length;
    body.replaceChildren(above, ...rows, below);
    if (focused !== undefined) find(`tr[data-place="${focused}"] a`, body)?.focus({ preventScroll: true });
  }
  body.addEventListener('click', e => {
    const clicked = e.target.closest('tr[data-place]');
    if (!clicked || e.metaKey || e.ctrlKey || getSelection().toString()) return;
    e.preventDefault(); go(view[clicked.dataset.place]);
  });
  let waiting = 0;
  addEventListener('scroll', () => { waiting ||= requestAnimationFrame(() => { waiting = 0; draw(false); }); }, { passive: true });
  addEventListener('resize', () => { heading(); draw(true); });
  function turnIntoButtons(query, act) {   // links of the head become buttons
    for (const each of all(query)) {
      each.setAttribute('role', 'button');
      const acting = e => { e.preventDefault(); act(each); apply(); if (each.dataset.fault || phone.matches) tools.scrollIntoView({ block: 'start' }); };
      each.addEventListener('click', acting); each.addEventListener('keydown', e => { if (e.key === ' ') acting(e); });
    }
  }

  /* one sample */
  const mark = () => { for (const each of all('tr[data-place]', body)) view[each.dataset.place] === open ? each.setAttribute('aria-current', 'true') : each.removeAttribute('aria-current'); };
  function go(i) {
    if (i === undefined) return;
    const address = '#sample=' + encodeURIComponent(data.id[i]);
    if (location.hash !== address) history.pushState(null, '', address);
    show(i);
  }
  function hide() { if (open < 0) return -1; const was = open; open = -1; drawer.classList.remove('on'); mark(); return was; }
  function close() { const was = hide(); if (was < 0) return; history.pushState(null, '', location.pathname + location.search); find(`tr[data-place="${view.indexOf(was)}"] a`, body)?.focus({ preventScroll: true }); }
  function step(by) {
    const place = view.indexOf(open), next = place < 0 ? 0 : place + by;
    if (!(next in view)) return;
    const top = body.getBoundingClientRect().top + next * (phone.matches ? 92 : 44);
    if (top < 90 || top > innerHeight - 60) scrollBy(0, top - innerHeight / 2);
    go(view[next]);
  }
  async function show(i) {
    open = i; mark(); drawer.classList.add('on'); drawer.setAttribute('aria-busy', 'true');
    const inside = await page.inside(i), place = view.indexOf(i);
    if (open !== i) return;
    const top = make('div.bar-top', {}, make('button.btn', { type: 'button', 'aria-label': 'Previous sample', disabled: place <= 0, onclick: () => step(-1) }, '↑'), make('button.btn', { type: 'button', 'aria-label': 'Next sample', disabled: place < 0 || place >= view.length - 1, onclick: () => step(1) }, '↓'),
      make('span.small.soft.pos', {}, place < 0 ? 'not in the filter' : `${(place + 1).toLocaleString('en')} of ${view.length.toLocaleString('en')}`), make('span.id.mono.soft', { title: data.id[i] }, text(data.id[i], 'bdi')), make('button.btn', { type: 'button', onclick: () => copied(location.href, 'Link copied') }, 'Copy link'), make('button.btn', { type: 'button', 'aria-label': 'Close sample', onclick: close }, '✕'));
    drawer.replaceChildren(top, make('div.inside', {}, inside)); drawer.removeAttribute('aria-busy'); drawer.setAttribute('aria-labelledby', 'ask'); drawer.scrollTop = 0; drawer.focus({ preventScroll: true });
  }
  function route() {
    const found = /^#sample=(.*)$/s.exec(location.hash);
    if (!found) { hide(); return; }
    let id = found[1]; try { id = decodeURIComponent(id); } catch { /* an id with a lone % */ }
    if (places.has(id)) show(places.get(id)); else { hide(); toast('No such sample on this page'); }
  }
  addEventListener('popstate', route); addEventListener('hashchange', route);
  find('[data-sample]')?.addEventListener('click', e => { e.preventDefault(); go(0); });

  const list = [['j k', 'next, previous sample'], ['Enter', 'open the sample in focus'], ['Esc', 'close it'], ['/', 'search'], ['f', page.f], ['1 – 9', 'go to the evidence of a statement'], ['?', 'this list']];
  const keys = make('dialog', { 'aria-label': 'Keys' }, make('h2', {}, 'Keys'), make('dl.keys', {}, list.map(([key, what]) => [make('dt', {}, make('kbd', {}, key)), make('dd', {}, what)])), make('button.btn', { type: 'button', onclick: () => keys.close() }, 'Close'));
  document.body.append(keys);
  addEventListener('keydown', e => {
    if (e.metaKey || e.ctrlKey || e.altKey || keys.open) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
    if (e.key === 'Escape') { if (typing) e.target.blur(); else close(); return; }
    if (typing) return;
    if (e.key === 'j' || e.key === 'k') step(open < 0 ? 0 : e.key === 'j' ? 1 : -1);
    else if (e.key === '/') { e.preventDefault(); search.focus(); }
    else if (e.key === 'f') { page.pressF(state); apply(); }
    else if (e.key === '?') keys.showModal();
    else if (open >= 0 && /^[1-9]$/.test(e.key)) find('.cite', all('.stmts > li', drawer)[e.key - 1] ?? drawer.firstChild)?.click();
  });
  addEventListener('DOMContentLoaded', () => { if (total > 300) find('#plain')?.remove(); });   // a small run keeps it for print
  return { state, turnIntoButtons, start() { apply(); route(); } };
}
