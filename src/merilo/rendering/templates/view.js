'use strict';
// The list of runs: filter, sort, choose, live progress. Text enters the page as text only.
(() => {
  const $ = (query, root = document) => root.querySelector(query);
  const $$ = (query, root = document) => [...root.querySelectorAll(query)];
  const version = JSON.parse($('#state').textContent).version;
  const body = $('.runs tbody'), rows = body ? $$('tr', body) : [];
  const find = $('#find'), count = $('#count'), compare = $('#compare'), boxes = $$('.pick input');
  const memory = 'merilo-runs';

  function filter() {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      shown += !row.hidden;
    }
    const all = `${rows.length} ${rows.length === 1 ? 'run' : 'runs'}`;
    count.textContent = shown === rows.length ? all : `${shown} of ${all}`;
  }

  function choose() {
    const chosen = boxes.filter(box => box.checked).length;
    compare.disabled = chosen < 2;
    compare.textContent = chosen < 2 ? 'Compare selected' : `Compare ${chosen} runs`;
  }

  function sort(head, direction) {
    for (const each of $$('.runs thead th')) each.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', direction);
    const column = head.cellIndex, sign = direction === 'ascending' ? 1 : -1;
    const values = new Map(rows.map(row => [row, row.cells[column].dataset.v]));
    const words = $('button', head).dataset.key === 'name';
    const ordered = [...rows].sort((a, b) => {
      const [x, y] = [values.get(a), values.get(b)];
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);  // no value: last
      return sign * (words ? x.localeCompare(y, undefined, {numeric: true}) : x - y);
    });
    body.append(...ordered);
  }

  function remember() {
    const sorted = $('.runs thead [aria-sort]');
    const state = {
      chosen: boxes.filter(box => box.checked).map(box => box.value), find: find.value, top: scrollY,
      key: $('button', sorted).dataset.key, direction: sorted.getAttribute('aria-sort'),
    };
    try { sessionStorage.setItem(memory, JSON.stringify(state)); } catch { /* no storage: start afresh */ }
  }

  function recall() {
    let state = null;
    try { state = JSON.parse(sessionStorage.getItem(memory)); sessionStorage.removeItem(memory); } catch { /* as above */ }
    if (!state) return;
    for (const box of boxes) box.checked = state.chosen.includes(box.value) && !box.disabled;
    find.value = state.find;
    const button = $$('.runs thead button').find(each => each.dataset.key === state.key);
    if (button) sort(button.parentElement, state.direction);
    scrollTo(0, state.top);
  }

  function reload() {
    if (body) remember();
    location.reload();
  }

  async function poll() {
    if (document.hidden) return;
    let found;
    try {
      const response = await fetch(location.pathname.replace(/(runs\/\w+)?$/, 'progress'));
      if (!response.ok) throw new Error(response.status);
      found = await response.json();
    } catch {
      $('#lost').hidden = false;
      return;
    }
    $('#lost').hidden = true;
    if (found.version !== version) { reload(); return; }
    for (const place of $$('[data-run]')) {
      const run = found.runs[place.dataset.run];
      if (!run) continue;
      const bar = $('progress', place);
      bar.max = Math.max(1, run.samples);
      bar.value = run.done;
      $('span', place).textContent = run.text;
    }
  }

  if (body) {
    recall();
    find.addEventListener('input', filter);
    for (const box of boxes) box.addEventListener('change', choose);
    for (const button of $$('.runs thead button')) {
      button.addEventListener('click', () => {
        const head = button.parentElement, was = head.getAttribute('aria-sort');
        const first = button.dataset.key === 'name' ? 'ascending' : 'descending';
        sort(head, was === null ? first : was === 'ascending' ? 'descending' : 'ascending');
      });
    }
    filter();
    choose();
  }
  const pause = () => $('[data-run]') ? 1000 : 5000;
  const next = () => setTimeout(async () => { await poll(); next(); }, pause());
  next();
  document.addEventListener('visibilitychange', poll);
})();
