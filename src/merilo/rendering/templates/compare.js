/* The comparison: samples by the change of one metric, and one sample with all runs side by side. */
const names = data.names, runs = names.map((_, run) => run), first = data.base, rest = runs.filter(run => run !== first);
const searched = data.id.map((id, i) => `${id}\n${data.q[i]}\n${runs.map(run => data.r[run][i]).join('\n')}`.toLowerCase());
const judged = data.f.some(own => own.some(f => data.faults[f].likely));
const chips = judged && data.chips;
const initial = Math.max(0, metrics.findIndex(each => each.id === data.by));
const signed = value => (value < 0 ? '−' : '+') + Math.abs(value).toFixed(2);
const likely = (run, i) => data.faults[data.f[run][i]].likely;
const SMALL = 1e-9;
function steps(at) {   // the run furthest from the base, minus the base; null without two scores
  return data.id.map((_, i) => {
    const base = data.v[at][first][i]; let most = null;
    if (scored(base)) for (const run of rest) { const step = data.v[at][run][i] - base; if (scored(data.v[at][run][i]) && (most === null || Math.abs(step) > Math.abs(most))) most = step; }
    return most;
  });
}
const known = new Map();
function changes(at) { if (!known.has(at)) known.set(at, steps(at)); return known.get(at); }
const better = (at, step) => step !== null && Math.abs(step) > SMALL ? (step > 0) === metrics[at].up ? 1 : -1 : 0;
function changed(at, i) {
  const step = changes(at)[i], sign = better(at, step);
  if (step === null) return make('span.chip.none', {}, runs.some(run => scored(data.v[at][run][i])) ? 'one run only' : 'no score');
  const open = metrics[at].unchecked;   // no one has checked the judge: no colour
  return chip(sign ? { tone: open ? 'none' : sign > 0 ? 'good' : 'bad', glyph: open ? '' : step > 0 ? '▲' : '▼', name: signed(step) } : { tone: 'none', glyph: '=', name: 'equal' });
}
const plain = value => scored(value) ? value.toFixed(2) : value === false ? 'failed' : 'undefined';
const both = (at, i) => runs.map(run => `${names[run]} ${plain(data.v[at][run][i])}`).join(', ');
function matches(i, { metric, change, fault }) {
  const step = changes(metric)[i], sign = better(metric, step);
  if (change === 'better' && sign <= 0 || change === 'worse' && sign >= 0 || change === 'moved' && !sign || change === 'equal' && (sign || step === null) || change === 'one' && step !== null) return false;
  if (fault === '') return true;
  const here = likely(first, i), there = rest.some(run => likely(run, i));
  return fault === 'first' ? here && !there : fault === 'other' ? there && !here : here && there;
}
function rank(each, others, c) {   // where the other run has this context; nothing with more than two runs
  if (others.length !== 1) return null;
  const there = others[0].detail.cx.findIndex(other => other.p === each.p);
  return there < 0 ? make('span.chip', {}, 'only here') : make('span.chip', {}, there === c ? 'same rank' : `there: ${there + 1}`);
}
function pane(run, i, found, others_) {
  const { detail, main } = found;
  return make('section.pane', { 'aria-label': names[run] }, make('h3', {}, text(names[run]), ' ', judged ? chip(data.faults[data.f[run][i]]) : null), make('p.small.soft', {}, counted(found)),
    main.length ? statements(found) : detail.r === null ? null : text(detail.r, 'p.t'), make('h4', {}, 'Contexts ', strip(found), make('span.small.soft', {}, relevant(found))),
    detail.cx.map((each, c) => context(each, c, found, false, rank(each, others_, c))), detail.whole.map(remark), people(detail), make('h4', {}, 'Scores'), scores(metrics.map((_, at) => data.v[at][run][i]), found), reasons(found), others(found));
}
const samples = table({
  f: `likely faults of ${names[first]} only`,
  filters: [
    { key: 'metric', label: 'Metric', none: initial, options: metrics.map((each, at) => [at, `by ${each.id}`]) },
    { key: 'change', label: 'Change', none: '', options: [['', 'Every change'], ['moved', 'Changed'], ['better', names.length > 2 ? 'Better score in another run' : `Better score in ${names[1]}`], ['worse', `Better score in ${names[first]}`], ['equal', 'Equal'], ['one', 'No two scores']] },
    ...(judged ? [{ key: 'fault', label: 'Fault', none: '', options: [['', 'Every fault'], ['first', `Fault in ${names[first]} only`], ['other', names.length > 2 ? 'Fault in another run only' : `Fault in ${names[1]} only`], ['all', 'Fault in more than one run']] }] : []),
  ],
  sorts: [['', 'Largest change first'], ['\0d', 'Largest drop first'], ['\0q', 'Question'], ...runs.map(run => ['\0v' + run, `${names[run]}, worst first`])],
  note: `The ${total.toLocaleString('en')} of ${count(data.total, 'sample')} that changed most. Differences and conclusions cover all.`,
  words: i => searched[i],
  matches: (i, state) => matches(i, { fault: '', ...state }),
  order({ metric, sort, up }) {
    const way = up ? 1 : -1, worst = metrics[metric].up === up ? 1 : -1;
    if (sort === '') return ranked(changes(metric).map(step => step === null ? null : Math.abs(step)), -1);
    if (sort === '\0d') return ranked(changes(metric), worst);
    if (sort === '\0q') return (a, b) => way * data.q[a].localeCompare(data.q[b]) || a - b;
    return ranked(data.v[metric][+sort.slice(2)], worst);
  },
  heads: () => [['\0d', 'Difference', '.c-d'], ['\0q', 'Question', '.c-q'], ...runs.slice(0, 6).map(run => ['\0v' + run, names[run], '.c-m.num', names[run]]), ...(chips ? runs.slice(0, 2).map(run => [null, `Fault in ${names[run]}`, '.c-f.c-r', names[run]]) : [])],
  row: (i, { metric }, link) => [make('td.c-d', {}, changed(metric, i)), link(i, phone.matches ? both(metric, i) : data.id[i]), runs.slice(0, 6).map(run => make('td.c-m.num', {}, shown(metric, data.v[metric][run][i]))),
    chips && runs.slice(0, 2).map(run => make('td.c-f.c-r', {}, chip(data.faults[data.f[run][i]])))].filter(Boolean),
  async inside(i) {
    const found = await Promise.all(runs.map(run => loaded('details' + run, i, `r${run}`))), { q, ref } = found[0].detail, at = samples.state.metric;
    return [make('h2.ask.t', { id: 'ask', dir: 'auto' }, q ?? ''), make('p.small', {}, changed(at, i), ` ${metrics[at].id}: ${both(at, i)}`), ref === null ? null : make('p.ref', {}, make('b', {}, 'Reference: '), text(ref)),
      legend(found[0]), make('div.two', {}, runs.map(run => pane(run, i, found[run], found.filter((_, other) => other !== run))))];
  },
  applied({ metric }) {
    const { id } = metrics[metric];
    for (const each of all('[data-metric]')) { each.setAttribute('aria-pressed', each.dataset.metric === id); each.closest('tr').classList.toggle('on', each.dataset.metric === id); }
  },
  pressF(state) { if (judged) state.fault = state.fault === 'first' ? '' : 'first'; },
});
samples.turnIntoButtons('[data-metric]', each => { samples.state.metric = metrics.findIndex(known => known.id === each.dataset.metric); });
samples.start();
