/* The parts of one sample: statements with the sentences that they cite, and contexts with evidence. */
const PATTERN = /[\p{L}\p{N}]+/gu;
const GLYPHS = { supported: '✓ ', unsupported: '✗ ', contradicted: '✗ ', none: '' };
async function loaded(kind, i, at) {   // `at`: the beginning of the names of its sentences, unique on the page
  const detail = await item(kind, i);
  const texts = await Promise.all(detail.cx.map(async each => { const [id, ...sentences] = await item('passages', each.p); return { id, sentences }; }));
  const own = detail.st[0] ?? { m: '', st: [] }, about = own.m.split(', ').some(name => name.startsWith('faithfulness')) || detail.r !== null && !own.m.startsWith('context_recall');
  const main = about ? own.st : [], rest = about ? detail.st.slice(1) : detail.st, cited = new Map();
  main.forEach((each, n) => each.c.forEach(pair => { const key = pair.join(','); cited.set(key, [...(cited.get(key) ?? []), n + 1]); }));
  const seen = new Set(texts.flatMap(each => each.sentences.flatMap(sentence => sentence.toLowerCase().match(PATTERN) ?? [])));
  return { at, detail, texts, main, rest, cited, seen, graded: detail.cx.filter(each => each.g !== null) };
}
function unseen(words, seen) {   // marks words of a statement that are in no context
  const parts = []; let at = 0;
  for (const found of words.matchAll(PATTERN)) if (!seen.has(found[0].toLowerCase()) && (found[0].length > 2 || /\p{N}/u.test(found[0]))) { parts.push(words.slice(at, found.index), make('mark', { title: 'in no context' }, found[0])); at = found.index + found[0].length; }
  return [...parts, words.slice(at)];
}
const remark = ([kind, said, reason]) => make('p.small.soft.t', { dir: 'auto' }, make('b', {}, kind + ': '), said, reason ? '. ' + reason : '');
const people = each => each.people.map(([words, same]) => make('p.person.small.t' + (same ? '.good' : '.bad'), { dir: 'auto' }, words));
const differs = each => each.people.some(([, same]) => !same);
function jump(at, context, sentence) {
  const drawer = find('#drawer'), found = document.getElementById(sentence < 0 ? `${at}c${context}` : `${at}c${context}s${sentence}`);
  if (!found) return;
  found.closest('details').open = true;
  for (const each of all('.on', drawer)) each.classList.remove('on');
  found.classList.add('on'); found.scrollIntoView({ block: 'center' });
}
function statement(each, { at, seen, texts }) {
  const verdicts = each.said.map(([kind, said, reason, label], n) => make('p.vd.t', { dir: 'auto' }, make('b', {}, (GLYPHS[label] ?? '') + said), kind === 'support' ? '' : ` (${kind.replace('support, ', '')})`, reason && !(each.c.length && n === each.by) ? ' ' + reason : ''));
  const near = each.l === 'supported' || each.l === 'contradicted' ? '' : 'Closest: ';
  return make('li.' + each.l, {}, make('p.st.t', { dir: 'auto' }, near && each.l !== 'none' && texts.length ? unseen(each.t, seen) : each.t), verdicts, people(each),
    each.c.map(([context, sentence]) => make('button.cite', { type: 'button', onclick: () => jump(at, context, sentence) }, make('em', {}, `${near}context ${context + 1}${sentence < 0 ? '' : `, sentence ${sentence + 1}`} →`), text(sentence < 0 ? '' : texts[context].sentences[sentence]))));
}
const statements = found => make('ol.stmts', {}, found.main.map(each => statement(each, found)));
const others = found => found.rest.map(group => make('details.fold', {}, make('summary', {}, `Statements of ${group.m}`), make('ol.stmts', {}, group.st.map(each => statement(each, found)))));
const grade = g => g === null ? null : make(g === 2 ? 'span.chip.good' : 'span.chip', {}, 'grade ' + g);
function context(each, c, { at, texts, cited }, unfolded, ...chips) {
  const { id, sentences } = texts[c], evidence = new Set(each.e), here = sentences.some((_, s) => cited.has(c + ',' + s)) || cited.has(c + ',-1');
  return make('details.ctx', { id: at + 'c' + c, open: unfolded && (each.g === null || each.g > 0 || here || differs(each)) }, make('summary', {}, make('b', {}, c + 1), make('span.ti', {}, text(sentences[0] || '(blank)', 'bdi'), ' ', text(id, 'bdi.mono.soft')), chips, differs(each) ? chip({ tone: 'bad', glyph: '✗', name: 'people differ' }) : null, grade(each.g)),
    make('div', { dir: 'auto' }, sentences.map((sentence, s) => { const by = cited.get(c + ',' + s); return [make('span.sent' + (evidence.has(s) ? '.ev' : '') + (by ? '.ci' : ''), { id: `${at}c${c}s${s}`, dir: 'auto' }, sentence, by ? make('sup', {}, by.join(',')) : null), ' ']; }), each.said.map(remark), people(each)));
}
const strip = ({ detail, graded }) => graded.length ? make('span.strip', { role: 'img', 'aria-label': 'Grades in rank order: ' + detail.cx.map(each => each.g ?? 'none').join(', ') }, detail.cx.map(each => make('i' + (each.g === null ? '' : '.g' + each.g), {}, each.g ?? '–'))) : null;
const legend = ({ cited, graded }) => make('div.legend', {}, make('span', {}, make('span.sent.ev', {}, 'evidence')), cited.size ? make('span', {}, make('span.sent.ci', {}, 'cited by a statement'), make('sup', {}, 'number')) : null, graded.length ? make('span', {}, 'grade 2: whole answer, 1: part, 0: nothing useful') : null);
function scores(values, { detail }) { return make('dl.scores', {}, metrics.map((each, at) => make('div', {}, make('dt', {}, each.id, each.weak ? [' ', make('span.weaktag', {}, 'weak')] : null, detail.n[each.id] ? make('span.small.basis', {}, detail.n[each.id]) : null), make('dd', {}, shown(at, values[at]))))); }
function reasons({ detail }) {
  const why = Object.entries(detail.why);
  return why.length ? make('details.fold', { open: why.some(([, [state]]) => state === 'failed') }, make('summary', {}, `${count(why.length, 'metric')} without a score: why`), why.map(([metric, [state, reason]]) => make('p.small', {}, make('b', {}, `${metric} ${state}: `), text(reason)))) : null;
}
function counted({ main }) {
  const of = label => main.filter(each => each.l === label).length, unjudged = of('none') + of('');
  return main.length ? `${of('supported')} of ${count(main.length, 'statement')} supported${unjudged ? `, ${unjudged} not judged` : ''}.` : '';
}
const relevant = ({ detail, graded }) => graded.length ? `${graded.filter(each => each.g > 0).length} of ${count(graded.length, 'context')} relevant` : detail.cx.length ? '' : 'none';
