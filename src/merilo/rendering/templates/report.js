'use strict';
/* The samples of a report: sort, filter, search, keys, and one sample in full. Text only enters the page as text nodes. */
(() => {
  const find = (query, within = document) => within.querySelector(query);
  const all = (query, within = document) => [...within.querySelectorAll(query)];
  const SVG = 'http://www.w3.org/2000/svg';
  const data = JSON.parse(find('#rows').textContent), blocks = JSON.parse(find('#blocks').textContent);
  const metrics = data.metrics, total = data.id.length;
  const places = new Map(); for (let i = total - 1; i >= 0; i--) places.set(data.id[i], i);
  const words = data.id.map((id, i) => `${id}\n${data.q[i]}\n${data.r[i]}`.toLowerCase());
  const answered = data.r.some(Boolean);   // a run of a retriever has no responses
  const phone = matchMedia('(max-width: 720px)');
  const state = { text: '', fault: -1, outcome: '', sort: '', up: true };   // fault: -1 all, -2 likely faults
  let view = [], open = -1, first = 0, last = -1;

  function make(name, given = {}, ...children) {
    const [tag, ...classes] = name.split('.'), made = document.createElement(tag);
    made.className = classes.join(' ');
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
  const text = (value, name = 'span.t') => make(name, { dir: 'auto' }, value ?? '');
  const scored = value => typeof value === 'number';
  const fault = i => data.faults[data.f[i]];
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
      shape('rect', { class: good < .5 ? 'bar lo' : 'bar', width: Math.max(1, wide), height: 6 }));
  }
  function shown(at, i) {
    const value = data.v[at][i];
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

  /* the table */
  const choice = (label, options, pick) => make('select', { 'aria-label': label, onchange: e => pick(e.target.value) }, options.map(([value, name]) => make('option', { value }, name)));
  const search = make('input', { type: 'search', placeholder: 'Search question, response, id', 'aria-label': 'Search samples', oninput: e => { state.text = e.target.value; apply(); } });
  const amounts = data.faults.map((_, f) => data.f.reduce((sum, each) => sum + (each === f), 0));
  const byFault = choice('Fault', [[-1, 'Every fault'], [-2, 'Likely faults'], ...data.faults.map((each, f) => [f, `${each.name} (${amounts[f]})`]).filter(([f]) => amounts[f])], value => { state.fault = +value; apply(); });
  const byOutcome = choice('Outcome', [['', 'Every outcome'], ['failed', 'A score failed'], ['undefined', 'A score undefined'], ...metrics.map((each, at) => [at, `${each.id}: worse half`]).filter(([at]) => quality(at, 0) !== null)], value => { state.outcome = value; apply(); });
  const bySort = choice('Sort', [['', 'Faults first'], ...metrics.map(each => [each.id, `${each.id}, worst first`]), ['\0k', 'Contexts']], value => { state.sort = value; state.up = true; apply(); });
  const amount = make('span.count', { role: 'status' });
  const clear = make('button.btn', { type: 'button', onclick: reset }, 'Clear');
  const tools = make('div.tools', {}, search, byFault, byOutcome, bySort, clear, amount, make('button.btn.keysbtn', { type: 'button', 'aria-label': 'Keys', onclick: () => keys.showModal() }, make('kbd', {}, '?')));
  const head = make('thead'), body = make('tbody'), grid = make('table.grid', { 'aria-label': 'Samples' }, head, body);
  const above = make('tr.pad', { 'aria-hidden': 'true' }, make('td')), below = make('tr.pad', { 'aria-hidden': 'true' }, make('td'));
  const empty = make('div.empty', {}, make('p', {}, 'No sample matches.'), make('button.btn', { type: 'button', onclick: reset }, 'Show all'));
  const note = total < data.total ? make('p.soft.small', {}, `The worst ${total.toLocaleString('en')} of ${count(data.total, 'sample')}. Means, histograms and counts of faults cover all.`) : null;
  find('#samples').append(...[note, tools, grid, empty].filter(Boolean));
  const drawer = find('#drawer');

  function reset() { Object.assign(state, { text: '', fault: -1, outcome: '', sort: '', up: true }); apply(); }
  function columns() {   // at most four metrics: those of the fault table, then the others; always the sorted one
    const order = metrics.map((_, at) => at).filter(at => data.v[at].some(scored));
    const rank = at => metrics[at].id === state.sort ? -1 : metrics[at].id.startsWith('context_sufficiency') ? 0 : metrics[at].id.startsWith('faithfulness') ? 1 : metrics[at].weak ? 3 : 2;
    return order.sort((a, b) => rank(a) - rank(b) || a - b).slice(0, innerWidth < 1000 ? 3 : 4);
  }
  function ranked(at) {   // failed and undefined last, in both directions
    const direction = state.up === metrics[at].up ? 1 : -1, values = data.v[at], last = value => value === false ? 2 : value === null ? 1 : 0;
    return (a, b) => last(values[a]) - last(values[b]) || direction * (values[a] - values[b]) || a - b;
  }
  function matches(i, wanted) {
    if (state.fault >= 0 ? data.f[i] !== state.fault : state.fault === -2 && !fault(i).likely) return false;
    if (wanted && !words[i].includes(wanted)) return false;
    if (state.outcome === 'failed') return data.v.some(values => values[i] === false);
    if (state.outcome === 'undefined') return data.v.some(values => values[i] === null);
    return state.outcome === '' || (scored(data.v[+state.outcome][i]) && quality(+state.outcome, data.v[+state.outcome][i]) < .5);
  }
  function apply() {
    const wanted = state.text.trim().toLowerCase(), at = metrics.findIndex(each => each.id === state.sort);
    view = []; for (let i = 0; i < total; i++) if (matches(i, wanted)) view.push(i);
    if (at >= 0) view.sort(ranked(at));
    else if (state.sort === '\0k') view.sort((a, b) => (state.up ? 1 : -1) * (data.k[a] - data.k[b]) || a - b);
    else if (state.sort === '\0q') view.sort((a, b) => (state.up ? 1 : -1) * data.q[a].localeCompare(data.q[b]) || a - b);
    amount.textContent = view.length === total ? count(total, 'sample') : `${view.length.toLocaleString('en')} of ${count(total, 'sample')}`;
    clear.hidden = view.length === total && !state.sort; empty.hidden = view.length > 0; grid.hidden = !view.length;
    grid.setAttribute('aria-rowcount', view.length + 1);
    if (search.value !== state.text) search.value = state.text;
    byFault.value = state.fault; byOutcome.value = state.outcome; bySort.value = state.sort;
    for (const each of all('[data-fault]')) each.setAttribute('aria-pressed', +each.dataset.fault === state.fault);
    for (const each of all('[data-metric]')) each.setAttribute('aria-pressed', each.dataset.metric === state.sort);
    heading(); draw(true);
  }
  function heading() {
    const cell = (key, label, name, title) => {
      const on = state.sort === key && key !== '';
      const turn = () => { if (state.sort === key) state.up = !state.up; else { state.sort = key; state.up = true; } apply(); };
      return make('th' + name, { scope: 'col', title, 'aria-sort': on ? (state.up ? 'ascending' : 'descending') : null }, make('button', { type: 'button', onclick: turn }, label + (on ? (state.up ? ' ↑' : ' ↓') : '')));
    };
    head.replaceChildren(make('tr', {}, cell('', 'Likely fault', '.c-f'), cell('\0q', 'Question', '.c-q'), answered && make('th.c-r', { scope: 'col' }, make('span', {}, 'Response')),
      columns().map(at => cell(metrics[at].id, metrics[at].id, '.c-m.num', metrics[at].id)), cell('\0k', 'contexts', '.c-k.num', 'Number of contexts')));
    for (const each of [above, below]) each.firstChild.colSpan = all('th', head).filter(th => getComputedStyle(th).display !== 'none').length;
  }
  function row(place) {
    const i = view[place];
    return make('tr', { 'data-place': place, 'aria-rowindex': place + 2, 'aria-current': i === open ? 'true' : null }, make('td.c-f', {}, chip(fault(i))),
      make('td.c-q', {}, make('a.q', { href: '#sample=' + encodeURIComponent(data.id[i]) }, text(data.q[i] || data.id[i])), make('span.sub', {}, text(phone.matches ? data.r[i] : data.id[i]))),
      answered && make('td.c-r.soft', {}, text(data.r[i])), columns().map((at, n) => make('td.c-m.num' + (n ? '' : '.first'), {}, make('span.lab', {}, metrics[at].id), shown(at, i))), make('td.c-k.num', {}, data.k[i]));
  }
  function draw(redraw) {   // only the rows in sight and a few more are in the page
    const tall = phone.matches ? 92 : 44, top = body.getBoundingClientRect().top;
    const from = Math.max(0, Math.min(view.length - 1, Math.floor(-top / tall / 8) * 8 - 8)), to = Math.min(view.length, Math.ceil((innerHeight - top) / tall / 8) * 8 + 8);
    if (!redraw && from === first && to === last) return;
    const focused = body.contains(document.activeElement) ? document.activeElement.closest('tr')?.dataset.place : undefined;
    first = from; last = Math.max(from, to);
    const rows = []; for (let place = first; place < last; place++) rows.push(row(place));
    above.firstChild.style.height = first * tall + 'px'; below.firstChild.style.height = (view.length - last) * tall + 'px';
    above.hidden = !first; below.hidden = last >= view.length;
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
  for (const each of all('[data-fault], [data-metric]')) {   // links of the head become buttons
    each.setAttribute('role', 'button');
    const act = e => {
      e.preventDefault();
      if (each.dataset.fault) state.fault = state.fault === +each.dataset.fault ? -1 : +each.dataset.fault;
      else { state.sort = state.sort === each.dataset.metric ? '' : each.dataset.metric; state.up = true; }
      apply(); if (each.dataset.fault || phone.matches) tools.scrollIntoView({ block: 'start' });
    };
    each.addEventListener('click', act); each.addEventListener('keydown', e => { if (e.key === ' ') act(e); });
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
  const PATTERN = /[\p{L}\p{N}]+/gu;
  function unseen(statement, seen) {   // marks words of a statement that are in no context
    const parts = []; let at = 0;
    for (const found of statement.matchAll(PATTERN)) if (!seen.has(found[0].toLowerCase()) && (found[0].length > 2 || /\p{N}/u.test(found[0]))) { parts.push(statement.slice(at, found.index), make('mark', { title: 'in no context' }, found[0])); at = found.index + found[0].length; }
    return [...parts, statement.slice(at)];
  }
  const remark = ([kind, said, reason]) => make('p.small.soft.t', { dir: 'auto' }, make('b', {}, kind + ': '), said, reason ? '. ' + reason : '');
  const GLYPHS = { supported: '✓ ', unsupported: '✗ ', contradicted: '✗ ', none: '' };
  function jump(context, sentence) {
    const found = find(sentence < 0 ? `#c${context}` : `#c${context}s${sentence}`, drawer);
    if (!found) return;
    found.closest('details').open = true;
    for (const each of all('.on', drawer)) each.classList.remove('on');
    found.classList.add('on'); found.scrollIntoView({ block: 'center' });
  }
  function statement(each, seen, texts) {
    const verdicts = each.said.map(([kind, said, reason]) => make('p.vd.t', { dir: 'auto' }, make('b', {}, (kind.startsWith('support') ? GLYPHS[each.l] ?? '' : '') + said), kind.startsWith('support') ? '' : ` (${kind})`, reason && !each.c.length ? ' ' + reason : ''));
    const near = each.l === 'supported' || each.l === 'contradicted' ? '' : 'Closest: ';
    return make('li.' + each.l, {}, make('p.st.t', { dir: 'auto' }, near && each.l !== 'none' && texts.length ? unseen(each.t, seen) : each.t), verdicts,
      each.c.map(([context, sentence]) => make('button.cite', { type: 'button', onclick: () => jump(context, sentence) }, make('em', {}, `${near}context ${context + 1}${sentence < 0 ? '' : `, sentence ${sentence + 1}`} →`), text(sentence < 0 ? '' : texts[context].sentences[sentence]))));
  }
  function context(each, c, texts, cited) {
    const { id, sentences } = texts[c], evidence = new Set(each.e), here = sentences.some((_, s) => cited.has(c + ',' + s)) || cited.has(c + ',-1');
    return make('details.ctx', { id: 'c' + c, open: each.g === null || each.g > 0 || here }, make('summary', {}, make('b', {}, c + 1), make('span.ti', {}, text(sentences[0] || '(blank)', 'bdi'), ' ', text(id, 'bdi.mono.soft')), each.g === null ? null : make(each.g === 2 ? 'span.chip.good' : 'span.chip', {}, 'grade ' + each.g)),
      make('div', { dir: 'auto' }, sentences.map((sentence, s) => { const by = cited.get(c + ',' + s); return [make('span.sent' + (evidence.has(s) ? '.ev' : '') + (by ? '.ci' : ''), { id: `c${c}s${s}` }, sentence, by ? make('sup', {}, by.join(',')) : null), ' ']; }), each.said.map(remark)));
  }
  async function show(i) {
    open = i; mark(); drawer.classList.add('on'); drawer.setAttribute('aria-busy', 'true');
    const detail = await item('details', i);
    const texts = await Promise.all(detail.cx.map(async each => { const [id, ...sentences] = await item('passages', each.p); return { id, sentences }; }));
    if (open !== i) return;
    const own = detail.st[0] ?? { m: '', st: [] }, about = own.m.split(', ').some(name => name.startsWith('faithfulness')) || detail.r !== null && !own.m.startsWith('context_recall');
    const main = about ? own.st : [], rest = about ? detail.st.slice(1) : detail.st;
    const cited = new Map(); main.forEach((each, n) => each.c.forEach(pair => { const key = pair.join(','); cited.set(key, [...(cited.get(key) ?? []), n + 1]); }));
    const seen = new Set(texts.flatMap(each => each.sentences.flatMap(sentence => sentence.toLowerCase().match(PATTERN) ?? [])));
    const graded = detail.cx.filter(each => each.g !== null), relevant = graded.filter(each => each.g > 0).length, sure = main.filter(each => each.l === 'supported').length;
    const facts = [main.length ? `${sure} of ${count(main.length, 'statement')} supported.` : '', graded.length ? `${relevant} of ${count(graded.length, 'context')} relevant.` : detail.cx.length ? `${count(detail.cx.length, 'context')}.` : 'No context.'];
    const place = view.indexOf(i), f = fault(i), why = Object.entries(detail.why);
    const top = make('div.bar-top', {}, make('button.btn', { type: 'button', 'aria-label': 'Previous sample', disabled: place <= 0, onclick: () => step(-1) }, '↑'), make('button.btn', { type: 'button', 'aria-label': 'Next sample', disabled: place < 0 || place >= view.length - 1, onclick: () => step(1) }, '↓'),
      make('span.small.soft.pos', {}, place < 0 ? 'not in the filter' : `${(place + 1).toLocaleString('en')} of ${view.length.toLocaleString('en')}`), make('span.id.mono.soft', { title: data.id[i] }, text(data.id[i], 'bdi')), make('button.btn', { type: 'button', onclick: copy }, 'Copy link'), make('button.btn', { type: 'button', 'aria-label': 'Close sample', onclick: close }, '✕'));
    const inside = make('div.inside', {}, make('div.cause.' + f.tone, {}, make('b', {}, `${f.glyph} ${f.name}`), f.cause + ' ', make('span.small', {}, facts.join(' '))),
      detail.h === undefined ? null : text(detail.h, 'p.t.small.soft'),
      make('h2.ask.t', { id: 'ask', dir: 'auto' }, detail.q ?? ''),
      make('section', {}, make('h2', {}, 'Response'), main.length ? make('ol.stmts', {}, main.map(each => statement(each, seen, texts))) : text(detail.r ?? 'No response.', 'p.t'), main.length ? make('details.fold', {}, make('summary', {}, 'Whole response'), text(detail.r, 'p.t')) : null),
      detail.ref === null ? null : make('section', {}, make('h2', {}, 'Reference'), text(detail.ref, 'p.t')),
      make('section', {}, make('h2', {}, 'Contexts', graded.length ? make('span.strip', { role: 'img', 'aria-label': 'Grades in rank order: ' + detail.cx.map(each => each.g ?? 'none').join(', ') }, detail.cx.map(each => make('i' + (each.g === null ? '' : '.g' + each.g), {}, each.g ?? '–'))) : null),
        make('div.legend', {}, make('span', {}, make('span.sent.ev', {}, 'evidence')), cited.size ? make('span', {}, make('span.sent.ci', {}, 'cited by a statement'), make('sup', {}, 'number')) : null, graded.length ? make('span', {}, 'grade 2: whole answer, 1: part, 0: nothing useful') : null), detail.cx.map((each, c) => context(each, c, texts, cited)), detail.whole.map(remark)),
      make('section', {}, make('h2', {}, 'Scores'), make('dl.scores', {}, metrics.map((each, at) => make('div', {}, make('dt', {}, each.id, each.weak ? [' ', make('span.weaktag', {}, 'weak')] : null), make('dd', {}, shown(at, i)))))),
      why.length ? make('details.fold', { open: why.some(([, [state]]) => state === 'failed') }, make('summary', {}, `${count(why.length, 'metric')} without a score: why`), why.map(([metric, [state, reason]]) => make('p.small', {}, make('b', {}, `${metric} ${state}: `), text(reason)))) : null,
      rest.map(group => make('details.fold', {}, make('summary', {}, `Statements of ${group.m}`), make('ol.stmts', {}, group.st.map(each => statement(each, seen, texts))))),
      make('details.fold', {}, make('summary', {}, detail.raw ? `What the judge was asked and replied (${detail.raw.length})` : 'What the judge was asked: see merilo show --sample'), (detail.raw ?? []).map(([kind, about, said, replies]) => [make('p.small.t', { dir: 'auto' }, make('b', {}, kind + ' '), about, ': ', said), replies.map(each => make('pre', { dir: 'auto' }, each))])));
    drawer.replaceChildren(top, inside); drawer.removeAttribute('aria-busy'); drawer.setAttribute('aria-labelledby', 'ask'); drawer.scrollTop = 0; drawer.focus({ preventScroll: true });
  }
  function toast(message) { const shownOnce = make('div.toast', { role: 'status' }, message); document.body.append(shownOnce); setTimeout(() => shownOnce.remove(), 2500); }
  async function copy() { try { await navigator.clipboard.writeText(location.href); toast('Link copied'); } catch { toast('The address bar has the link'); } }
  function route() {
    const found = /^#sample=(.*)$/s.exec(location.hash);
    if (!found) { hide(); return; }
    let id = found[1]; try { id = decodeURIComponent(id); } catch { /* an id with a lone % */ }
    if (places.has(id)) show(places.get(id)); else { hide(); toast('No such sample on this page'); }
  }
  addEventListener('popstate', route); addEventListener('hashchange', route);
  find('[data-sample]')?.addEventListener('click', e => { e.preventDefault(); go(0); });

  const list = [['j k', 'next, previous sample'], ['Enter', 'open the sample in focus'], ['Esc', 'close it'], ['/', 'search'], ['f', 'likely faults only'], ['1 – 9', 'go to the evidence of a statement'], ['?', 'this list']];
  const keys = make('dialog', { 'aria-label': 'Keys' }, make('h2', {}, 'Keys'), make('dl.keys', {}, list.map(([key, what]) => [make('dt', {}, make('kbd', {}, key)), make('dd', {}, what)])), make('button.btn', { type: 'button', onclick: () => keys.close() }, 'Close'));
  document.body.append(keys);
  addEventListener('keydown', e => {
    if (e.metaKey || e.ctrlKey || e.altKey || keys.open) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
    if (e.key === 'Escape') { if (typing) e.target.blur(); else close(); return; }
    if (typing) return;
    if (e.key === 'j' || e.key === 'k') step(open < 0 ? 0 : e.key === 'j' ? 1 : -1);
    else if (e.key === '/') { e.preventDefault(); search.focus(); }
    else if (e.key === 'f') { state.fault = state.fault === -2 ? -1 : -2; apply(); }
    else if (e.key === '?') keys.showModal();
    else if (open >= 0 && /^[1-9]$/.test(e.key)) find('.cite', all('.stmts > li', drawer)[e.key - 1] ?? drawer.firstChild)?.click();
  });
  apply(); route();
  addEventListener('DOMContentLoaded', () => { if (total > 300) find('#plain')?.remove(); });   // a small run keeps it for print
})();
