'use strict';
// The list of runs: filter, sort, choose. Text enters the page as text only.
(() => {
  const $ = (query, root = document) => root.querySelector(query);
  const $$ = (query, root = document) => [...root.querySelectorAll(query)];
  const body = $('.runs tbody'), rows = body ? $$('tr', body) : [];
  const find = $('#find'), count = $('#count'), compare = $('#compare'), boxes = $$('.pick input');

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

  if (body) {
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
})();
