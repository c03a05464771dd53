'use strict';
/* One task at a time: keys, undo, and answers that are saved in the browser as they are given.
   Text only enters the page as text nodes. */
(() => {
  const find = (query, within = document) => within.querySelector(query);
  const data = JSON.parse(find('#tasks').textContent), root = find('#label');
  const columns = new Set(data.columns), read = new Set(data.read), prefix = `merilo:labels:${data.digest}:`;
  const tasks = data.records.map((record, at) => ({ id: record.task, record, form: data.forms[data.form[at]] })).filter(each => each.form);
  const places = new Map(tasks.map((task, at) => [task.id, at]));
  const memory = new Map();   // the answers of each annotator, if the browser stores nothing
  let who = '', labels = new Map(), times = new Map(), since = 0, undos = [], at = -1, stored = true;

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
  const text = (value, name = 'p.t') => make(name, { dir: 'auto' }, value);
  const button = (label, act, more = {}, name = 'button.btn') => make(name, { type: 'button', onclick: act, ...more }, label);
  const key = name => make('kbd', { 'aria-hidden': 'true' }, name);
  const count = (number, thing) => `${number.toLocaleString('en')} ${thing}${number === 1 ? '' : 's'}`;
  const toast = words => { find('.toast')?.remove(); const made = make('p.toast', { role: 'status' }, words); document.body.append(made); setTimeout(() => made.remove(), 4000); };

  /* what the browser keeps */
  function storage(name) {
    try { const found = window[name]; found.setItem(prefix, '1'); found.removeItem(prefix); return found; } catch { return null; }
  }
  const local = storage('localStorage'), tab = storage('sessionStorage'), OF = prefix + 'of:';
  stored = local !== null;
  const valid = (task, label) => task !== undefined && typeof label === 'string' && (task.form.keys.length ? task.form.keys.some(each => each[1] === label) : number(task, label) !== null);
  function loaded(name) {
    let found = memory.get(name) ?? null;
    try { found = (local && local.getItem(OF + name)) ?? found; found = found && JSON.parse(found); } catch { found = null; }
    const pairs = Array.isArray(found?.labels) ? found.labels.filter(each => Array.isArray(each) && valid(tasks[places.get(each[0])], each[1])) : [];
    const undo = Array.isArray(found?.undos) ? found.undos.filter(each => Array.isArray(each) && places.has(each[0])) : [];
    const timed = Array.isArray(found?.times) ? found.times.filter(each => Array.isArray(each) && places.has(each[0]) && bounded(each[1])) : [];
    return { labels: new Map(pairs), times: new Map(timed), undos: undo };
  }
  function keep() {
    const value = JSON.stringify({ labels: [...labels], times: [...times], undos: undos.slice(-500) });
    memory.set(who, value);
    try { local.setItem(OF + who, value); stored = true; } catch { stored = false; }
  }
  function names() {
    const found = new Set(memory.keys());
    for (let place = 0; local && place < local.length; place++) if (local.key(place).startsWith(OF)) found.add(local.key(place).slice(OF.length));
    return [...found].sort();
  }
  addEventListener('storage', event => {   // the same annotator in another tab
    if (!who || event.key !== OF + who) return;
    ({ labels, times, undos } = loaded(who)); draw();
  });
  addEventListener('beforeunload', event => { if (!stored && labels.size) event.preventDefault(); });

  /* whether the answers are saved */
  const saying = () => {
    return stored ? ['', 'Saved in this browser'] : ['bad', 'Not saved: this browser stores nothing. Download the file before you close the page.'];
  };
  function status() {
    const place = find('.state'), [tone, words] = saying();
    if (!place) return;
    if (place.textContent !== words) place.textContent = words;
    place.className = `state small ${tone === 'bad' ? 'note' : 'soft'}`;
  }

  /* answers */
  function number(task, typed) {
    const value = typed.trim().replace(',', '.');
    if (value.length > 24 || !/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(value)) return null;
    const { low, high } = task.form, found = Number(value);
    return Number.isFinite(found) && (low === null || found >= low) && (high === null || found <= high) ? value : null;
  }
  const bounded = seconds => typeof seconds === 'number' && seconds >= 0 && seconds <= data.pause;
  function minutes(left) {   // that these tasks take: by the median of the annotator's own, from ten on
    const known = [...times.values()].sort((a, b) => a - b), half = known.length / 2;
    const each = known.length < 10 ? data.assumed : (known[Math.ceil(half) - 1] + known[Math.floor(half)]) / 2;
    return `about ${count(Math.max(1, Math.round(left * each / 60)), 'minute')}`;
  }
  const open = () => tasks.findIndex(task => !labels.has(task.id));
  function following() {   // the next task without an answer, then the first one
    const later = tasks.findIndex((task, place) => place > at && !labels.has(task.id));
    return later >= 0 ? later : open();
  }
  function put(id, label) {
    if (label === null) { labels.delete(id); times.delete(id); } else labels.set(id, label);
    keep();
  }
  function answer(label) {
    const task = tasks[at];
    undos.push([task.id, labels.get(task.id) ?? null]);
    const took = Math.round((performance.now() - since) / 100) / 10;
    if (bounded(took)) times.set(task.id, took); else times.delete(task.id);   // a pause is not counted
    put(task.id, label); at = following(); draw();
  }
  function undo() {
    const last = undos.pop();
    if (!last) return;
    at = places.get(last[0]); put(last[0], last[1]); draw(); toast('Undone');
  }
  function skip() {
    const later = tasks.findIndex((task, place) => place > at && !labels.has(task.id));
    at = later; draw();
  }
  const move = step => { if (tasks[at + step]) { at += step; draw(); } };

  /* the file, in the format of merilo label */
  const slug = name => name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '').slice(0, 40) || 'annotator';
  const fileOf = name => `labels-${slug(name)}.jsonl`;
  function download() {
    const lines = data.records.map(record => JSON.stringify(places.has(record.task) ? { ...record, label: labels.get(record.task) ?? null, annotator: labels.has(record.task) ? who : null, seconds: times.get(record.task) ?? null } : record));
    const url = URL.createObjectURL(new Blob([lines.join('\n') + '\n'], { type: 'application/jsonl' }));
    make('a', { href: url, download: fileOf(who) }).click();
    setTimeout(() => URL.revokeObjectURL(url), 5000);
  }
  function parsed(line) { try { const found = JSON.parse(line); return found && typeof found === 'object' ? found : {}; } catch { return {}; } }
  async function imported(file, typed) {   // a file that was downloaded here or on another machine
    const rows = (await file.text()).split('\n').map(parsed).filter(row => places.has(row.task));
    const given = rows.filter(row => valid(tasks[places.get(row.task)], row.label));
    if (!rows.length) return `${file.name} has no answers to these tasks.`;
    if (!start(typed || String(given[0]?.annotator ?? '') || 'annotator')) return '';
    for (const row of given) { labels.set(row.task, row.label); if (bounded(parseFloat(row.seconds))) times.set(row.task, parseFloat(row.seconds)); }
    keep(); at = open(); draw(); toast(`${count(given.length, 'answer')} read from ${file.name}`);
    return '';
  }

  /* the pages */
  function start(typed) {   // false if the name is blank
    const name = typed.replace(/[\p{C}\s]+/gu, ' ').trim().slice(0, 60);
    who = name;
    if (!who) return false;
    ({ labels, times, undos } = loaded(who));
    keep(); at = open();
    try { tab?.setItem(prefix + 'who', who); } catch { /* a reload asks for the name */ }
    draw();
    return true;
  }
  function hello() {
    who = ''; at = -1; try { tab?.removeItem(prefix + 'who'); } catch { /* nothing was stored */ }
    const name = make('input', { type: 'text', id: 'name', autocomplete: 'off', maxlength: 60, required: true });
    const wrong = make('p.small.bad', { role: 'status' });
    const file = make('input', { type: 'file', accept: '.jsonl', id: 'file', onchange: async () => { wrong.textContent = file.files[0] ? await imported(file.files[0], name.value) : ''; } });
    const people = names();
    root.replaceChildren(make('form.card', { onsubmit: event => { event.preventDefault(); start(name.value); } },
      make('h1', {}, `Label ${count(tasks.length, 'task')}`),
      make('p', {}, make('b', {}, `${count(data.questions, 'question')}, ${minutes(tasks.length)}. `), 'You read some texts and give one answer at a time. Nothing here shows what the judge or another annotator answered. Each answer is saved in this browser at once; you can stop at any time and continue later.'),
      stored ? null : make('p.note', {}, 'This browser stores nothing for this page. Download your file before you close it.'),
      make('label', { for: 'name' }, 'Your name'), name, make('button.btn.main', { type: 'submit' }, 'Start'),
      people.length ? make('p.people', {}, 'Continue as ', people.map(each => [button([text(each, 'span.t'), make('span.soft', {}, ` ${loaded(each).labels.size} of ${tasks.length}`)], () => start(each)), ' '])) : null,
      make('details', {}, make('summary', {}, 'Continue from a file'), make('p.small', {}, 'Choose the file that you downloaded here or on another machine.'), make('label.vh', { for: 'file' }, 'File'), file), wrong), guide());
    name.focus();
  }
  const guide = () => make('details.guide', { open: find('.guide')?.open }, make('summary', {}, make('b', {}, 'Guidelines '), key('g')), make('ul.small', {}, data.guidelines.map(each => make('li', {}, each))));
  function choices(task) {
    const now = labels.get(task.id);
    if (task.form.keys.length) return make('div.answers', {}, task.form.keys.map(([typed, label, meaning]) => button([make('b', {}, label), meaning ? make('span', {}, meaning) : null, typed === label ? null : key(typed)], () => answer(label), { 'aria-pressed': String(now === label) }, 'button.btn.answer')));
    const { low, high } = task.form, input = make('input', { type: 'text', inputmode: 'decimal', id: 'value', autocomplete: 'off', value: now ?? '' });
    const ends = low === null || high === null ? 'A number' : `A number from ${low} to ${high}`;
    const wrong = make('span.small.bad', { role: 'status' });
    return make('form.answers', { onsubmit: event => { event.preventDefault(); const found = number(task, input.value); if (found === null) wrong.textContent = `${ends}, please.`; else answer(found); } },
      make('label.small', { for: 'value' }, ends), input, make('button.btn.main.answer', { type: 'submit' }, 'Answer'), wrong);
  }
  function item() {
    since = performance.now();
    const task = tasks[at], texts = Object.entries(task.record).filter(([name, value]) => !columns.has(name) && typeof value === 'string' && value);
    const titled = ([name, value], heading, more) => [make(heading, {}, data.names[name] ?? name), text(value, more)];
    const about = texts.filter(([name]) => !read.has(name)), long = texts.filter(([name]) => read.has(name));
    const pin = make('section.pin', { tabindex: -1, 'aria-label': 'What the task is about' }, make('h1.vh', {}, `Task ${at + 1} of ${tasks.length}`), about.map((each, place) => make('div', {}, titled(each, 'h2', place === about.length - 1 ? 'p.t.st' : 'p.t'))));
    root.replaceChildren(make('div.task', {},
      make('div.row', {}, make('progress', { max: tasks.length, value: labels.size, 'aria-label': 'Answered' }), make('span.small.nw', {}, `${labels.size} of ${tasks.length}`), make('span.small.soft.nw', {}, `${minutes(tasks.length - labels.size)} left`), button(text(who, 'span.t'), hello, { title: 'Another annotator' }, 'button.btn.ghost.name')),
      make('div.block', {}, pin, make('section.texts', { tabindex: 0, 'aria-label': 'Texts to read' }, long.map(each => make('article', {}, titled(each, 'h2', 'p.t')))),
        make('div.dock', {}, make('h2.ask', {}, text(task.record.question, 'span.t')), choices(task))),
      make('div.below', {},
        make('div.row', {}, button(['Undo ', key('u')], undo, { disabled: !undos.length }), button(['Skip ', key('s')], skip), button('←', () => move(-1), { 'aria-label': 'Previous task', disabled: at === 0 }), button('→', () => move(1), { 'aria-label': 'Next task', disabled: at === tasks.length - 1 }), make('span.small.soft.nw', {}, `task ${at + 1}`), button('Finish', () => { at = -1; draw(); }, {}, 'button.btn.finish'), button(key('?'), help, { 'aria-label': 'Keys' }, 'button.btn.keysbtn')),
        make('p.state', { role: 'status' }), guide())));
    status();
    (find('#value') ?? pin).focus({ preventScroll: true });
  }
  function done() {
    const left = tasks.length - labels.size, amounts = new Map();
    for (const label of labels.values()) amounts.set(label, (amounts.get(label) ?? 0) + 1);
    const files = names().filter(each => loaded(each).labels.size).map(fileOf), runs = data.pair ? 'RUN OTHER' : 'RUN';
    const commands = given => [`merilo label ${runs} ${given.map(each => `--labels ${each}`).join(' ')}`, `merilo ${data.pair ? 'compare' : 'show'} ${runs}`].join('\n');
    const counted = tasks.some(task => task.form.keys.length) ? [...amounts].sort().map(([label, amount]) => `${label}: ${amount}`).join(', ') : '';
    root.replaceChildren(make('section.card', {},
      make('h1', {}, left ? `${labels.size} of ${count(tasks.length, 'task')} answered` : `All ${count(tasks.length, 'task')} answered`), counted ? make('p.soft', {}, counted) : null,
      make('p.state', { role: 'status' }),
      make('div.row', {}, button(`Download ${fileOf(who)}`, download, {}, 'button.btn.main'), left ? button('Answer the others', () => { at = open(); draw(); }) : button('Look through the answers', () => { at = 0; draw(); }), button(['Undo ', key('u')], undo, { disabled: !undos.length }), button('Another annotator', hello)),
      [make('h2', {}, 'Then'), make('p', {}, 'Send the file to the person who gave you this page. These commands attach it, and show the numbers corrected by your answers:'), make('pre', { tabindex: 0 }, commands([fileOf(who)])),
      make('h2', {}, 'Several annotators'), make('p', {}, 'Each annotator has a separate file. Given together, the first command also shows how well the annotators agree:'), make('pre', { tabindex: 0 }, commands(files.length > 1 ? files : [fileOf(who), 'labels-other.jsonl'])),
      make('p.small.soft', {}, `${runs}: the ${data.pair ? 'directories of the two runs' : 'directory of the run'} that the tasks come from.`)]));
    status(); find('.btn.main').focus();
  }
  function draw() { if (!who) hello(); else if (at < 0) done(); else item(); }
  const rows = [['y n 0 1 2 …', 'the answers, as on their buttons'], ['u', 'undo the last answer'], ['s', 'skip the task for now'], ['← →', 'previous and next task'], ['↑ ↓', 'scroll the texts'], ['g', 'guidelines'], ['?', 'this list']];
  const keys = make('dialog', { 'aria-labelledby': 'keys' }, make('h2', { id: 'keys' }, 'Keys'), make('dl.keys', {}, rows.map(([name, words]) => [make('dt', {}, make('kbd', {}, name)), make('dd', {}, words)])), button('Close', () => keys.close()));
  document.body.append(keys);
  const help = () => { if (!keys.open) keys.showModal(); };

  addEventListener('keydown', event => {
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key, within = event.target;
    if (event.metaKey || event.ctrlKey || event.altKey || keys.open || !who) return;
    const typing = within.tagName === 'INPUT';
    if (typing && !['u', 's', 'g', '?'].includes(name)) return;
    const chosen = at >= 0 && !typing ? tasks[at].form.keys.find(each => each[0].toLowerCase() === name) : undefined;
    if (chosen) { if (!event.repeat) answer(chosen[1]); }
    else if (name === 'u' || name === 'z') undo();
    else if (name === '?') help();
    else if (at < 0) return;
    else if (name === 's') { if (!event.repeat) skip(); }
    else if (name === 'g') { const fold = find('.guide'); fold.open = !fold.open; }
    else if (name === 'ArrowLeft') move(-1);
    else if (name === 'ArrowRight') move(1);
    else if ((name === 'ArrowDown' || name === 'ArrowUp') && document.activeElement !== find('.texts')) find('.texts').scrollBy(0, name === 'ArrowDown' ? 80 : -80);
    else return;
    event.preventDefault();
  });
  let before = ''; try { before = tab?.getItem(prefix + 'who') ?? ''; } catch { /* asked for below */ }
  if (before) start(before); else hello();
})();
