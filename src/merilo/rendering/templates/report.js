/* The report on one run: faults first, and one sample in full. */
const searched = data.id.map((id, i) => `${id}\n${data.q[i]}\n${data.r[i]}`.toLowerCase());
const answered = data.r.some(Boolean);   // a run of a retriever has no responses
const fault = i => data.faults[data.f[i]];
const chips = data.judged && answered, labelled = data.differs.some(each => each !== null);
const differing = data.differs.filter(each => each > 0);
const agreed = each => each === null ? null : chip(each > 0 ? { tone: 'bad', glyph: '✗', name: 'differs' } : { tone: 'good', glyph: '✓', name: 'agrees' });
const amounts = data.faults.map((_, f) => data.f.reduce((sum, each) => sum + (each === f), 0));
function columns(state) {   // the first four metrics in the order of the cards; the sorted one takes the last place
  const order = metrics.map((_, at) => at).filter(at => data.v[at].some(scored)).sort((a, b) => metrics[a].weak - metrics[b].weak || a - b);
  const most = innerWidth < 1000 ? 3 : 4, place = order.findIndex(at => metrics[at].id === state.sort);
  return place < most ? order.slice(0, most) : [...order.slice(0, most - 1), order[place]];
}
const metadata = ({ meta }) => meta.length ? make('section', {}, make('h2', {}, 'Metadata'), make('dl.scores', {}, meta.map(([name, value]) => make('div', {}, make('dt', {}, text(name)), make('dd', {}, text(value)))))) : null;
function asked(detail) {   // the judge's questions and replies
  return detail.raw && !detail.raw.length ? null : make('details.fold', {}, make('summary', {}, detail.raw ? `What the judge was asked and replied (${detail.raw.length})` : 'What the judge was asked: see merilo show --sample'), (detail.raw ?? []).map(([kind, about, said, replies]) => [make('p.small.t', { dir: 'auto' }, make('b', {}, kind + ' '), about, ': ', said), replies.map(each => make('pre', { dir: 'auto' }, each))]));
}
const samples = table({
  f: 'likely faults only',
  filters: [   // fault: -1 all, -2 likely faults
    ...!data.judged ? [] : [{ key: 'fault', label: 'Fault', none: -1, options: [[-1, 'Every fault'], [-2, 'Likely faults'], ...data.faults.map((each, f) => [f, `${each.name} (${amounts[f]})`]).filter(([f]) => amounts[f])] }],
    ...data.by.length ? [{ key: 'slice', label: 'Slice', none: '', options: [['', 'Every slice'], ...data.by.flatMap(({ field, values }, at) => values.map((value, place) => [`${at}/${place}`, `${field}: ${value}`]))] }] : [],
    { key: 'outcome', label: 'Outcome', none: '', options: [['', 'Every outcome'], ['failed', 'A score failed'], ['undefined', 'A score undefined'], ...differing.length ? [['people', `People and judge differ (${differing.length})`]] : [], ...metrics.map((each, at) => [at, `${each.id}: worse half`]).filter(([at]) => quality(at, 0) !== null)] },
  ],
  sorts: [['', 'Worst first'], ...metrics.map(each => [each.id, `${each.id}, worst first`]), ['\0k', 'Contexts']],
  note: `The worst ${total.toLocaleString('en')} of ${count(data.total, 'sample')}. Means, histograms and counts of faults cover all.`,
  words: i => searched[i],
  matches(i, state) {
    if (state.fault >= 0 ? data.f[i] !== state.fault : state.fault === -2 && !fault(i).likely) return false;
    if (state.slice) { const [at, place] = state.slice.split('/'); if (data.by[at].of[i] !== +place) return false; }
    if (state.outcome === 'failed') return data.v.some(values => values[i] === false);
    if (state.outcome === 'people') return data.differs[i] > 0;
    if (state.outcome === 'undefined') return data.v.some(values => values[i] === null);
    return state.outcome === '' || (scored(data.v[+state.outcome][i]) && quality(+state.outcome, data.v[+state.outcome][i]) < .5);
  },
  order(state) {
    const at = metrics.findIndex(each => each.id === state.sort), way = state.up ? 1 : -1;
    if (at >= 0) return ranked(data.v[at], state.up === metrics[at].up ? 1 : -1);
    if (state.sort === '\0k') return (a, b) => way * (data.k[a] - data.k[b]) || a - b;
    if (state.sort === '' && state.outcome === 'people') return ranked(data.differs, -1);   // the judge's most certain verdicts first
    return state.sort === '\0q' ? (a, b) => way * data.q[a].localeCompare(data.q[b]) || a - b : null;
  },
  heads: state => [chips && ['', 'Fault', '.c-f'], ['\0q', 'Question', '.c-q'], answered && [null, 'Response', '.c-r'], ...columns(state).map(at => [metrics[at].id, metrics[at].id, '.c-m.num', metrics[at].id]), labelled && [null, 'People', '.c-p', 'Whether annotators agree with the judge'], ['\0k', 'contexts', '.c-k.num', 'Number of contexts']],
  row: (i, state, link) => [chips && make('td.c-f', {}, chip(fault(i))), link(i, phone.matches ? data.r[i] : data.id[i]), answered && make('td.c-r.soft', {}, text(data.r[i])),
    columns(state).map((at, n, all) => make('td.c-m.num' + ((all.some(each => metrics[each].id === state.sort) ? metrics[at].id === state.sort : !n) ? '.first' : ''), {}, make('span.lab', {}, metrics[at].id), shown(at, data.v[at][i]))), labelled && make('td.c-p', {}, agreed(data.differs[i])), make('td.c-k.num', {}, data.k[i])].filter(Boolean),
  async inside(i) {
    const found = await loaded('details', i, ''), { detail, main } = found, f = fault(i);
    return [data.judged && make('div.cause.' + f.tone, {}, make('b', {}, `${f.glyph} ${f.name}`), f.cause + ' ', make('span.small', {}, counted(found))),
      detail.h === undefined ? null : text(detail.h, 'p.t.small.soft'),
      make('h2.ask.t', { id: 'ask', dir: 'auto' }, detail.q ?? ''),
      make('section', {}, make('h2', {}, 'Response'), main.length ? statements(found) : text(detail.r ?? 'No response.', 'p.t'), main.length ? make('details.fold', {}, make('summary', {}, 'Whole response'), text(detail.r, 'p.t')) : null),
      detail.ref === null ? null : make('section', {}, make('h2', {}, 'Reference'), text(detail.ref, 'p.t')),
      make('section', {}, make('h2', {}, 'Contexts', strip(found), make('span.small.soft', {}, relevant(found))), legend(found), detail.cx.map((each, c) => context(each, c, found, true)), detail.whole.map(remark), people(detail)),
      make('section', {}, make('h2', {}, 'Scores'), scores(metrics.map((_, at) => data.v[at][i]), found)), reasons(found), metadata(detail), others(found), asked(detail)];
  },
  applied(state) {
    for (const each of all('[data-fault]')) each.setAttribute('aria-pressed', +each.dataset.fault === state.fault);
    for (const each of all('[data-metric]')) each.setAttribute('aria-pressed', each.dataset.metric === state.sort);
    for (const each of all('[data-slice]')) each.setAttribute('aria-pressed', each.dataset.slice === state.slice);
  },
  pressF(state) { if (data.judged) state.fault = state.fault === -2 ? -1 : -2; },
});
samples.turnIntoButtons('[data-fault]', each => { samples.state.fault = samples.state.fault === +each.dataset.fault ? -1 : +each.dataset.fault; });
samples.turnIntoButtons('[data-metric]', each => { samples.state.sort = samples.state.sort === each.dataset.metric ? '' : each.dataset.metric; samples.state.up = true; });
samples.turnIntoButtons('[data-slice]', each => { samples.state.slice = samples.state.slice === each.dataset.slice ? '' : each.dataset.slice; });
if (data.by.length > 1) {
  const field = make('select', { 'aria-label': 'Field of the slices', onchange: () => { for (const each of all('[data-by]')) each.hidden = each.dataset.by !== field.value; } }, data.by.map((each, at) => make('option', { value: at }, each.field)));
  find('#by').replaceChildren('By ', field);
}
samples.start();
