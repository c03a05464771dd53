"""Features of the lexical judge: rows of numbers for sentences, contexts, statements and answers."""

import math
from collections.abc import Sequence
from typing import Final

from merilo.judges.lexical_match import (
    MIN_PREFIX,
    Lexicon,
    Matches,
    Query,
    best_window,
    shared_pairs,
    union,
    weigh,
    window_share,
)
from merilo.judges.lexical_text import Words, prefix

SENTENCE_FEATURES: Final = tuple(
    """
    coverage prefix_coverage bm25 bigrams heaviest_missing heaviest_matched copied log_length
    log_query local_coverage behind_best behind_best_local is_best neighbour with_previous first
    number_missing name_missing new_number new_name new_share who when where count why
    expectation_unmet question negation log_units matched_terms
""".split()
)
CONTEXT_FEATURES: Final = tuple(
    """
    coverage prefix_coverage bigrams heaviest_missing best_unit best_pair best_three best_local
    top_sentence second_sentence any_sentence number_missing name_missing log_length log_query
    density unmet_in_best coverage_squared units_touched matched_terms
""".split()
)
SUPPORT_FEATURES: Final = tuple(
    """
    coverage prefix_coverage best_unit best_pair best_three pair_prefix bigrams heaviest_missing
    number_missing name_missing negation log_length personal question log_query squared copied
    number_missing_window name_missing_window all_there trigrams matched_terms missing_terms
""".split()
)
ANSWER_FEATURES: Final = tuple(
    """
    coverage prefix_coverage bigrams heaviest_missing copied log_length log_query new_share
    new_number new_name who when where count why expectation_unmet question number_missing
    name_missing negation short nothing_new refuses
""".split()
)
USEFULNESS_FEATURES: Final = tuple(
    """
    reference reference_prefix new_words new_words_best reference_best reference_pair
    number_missing name_missing bigrams heaviest_missing question question_best near
    log_reference log_length new_terms
""".split()
)

_LOCAL: Final = SENTENCE_FEATURES.index("local_coverage")
_UNMET: Final = SENTENCE_FEATURES.index("expectation_unmet")
_NO_LOGIT: Final = -8.0
"""Log odds that replace those of a missing sentence."""
_TOUCHED: Final = 0.25
_SHORT_ANSWER: Final = 4


def sentence_features(found: Matches, lexicon: Lexicon) -> list[tuple[float, ...]]:
    """Return one row of SENTENCE_FEATURES for each unit, in unit order."""
    query, count = found.query, len(found.units)
    local = _local_weights(found)
    local_total = math.fsum(local) or 1.0
    memo = {mask: (found.share(mask), weigh(mask, local) / local_total) for mask in found.masks}
    memo[0] = (0.0, 0.0)
    best = max((memo[mask][0] for mask in found.masks), default=0.0)
    best_local = max((memo[mask][1] for mask in found.masks), default=0.0)
    log_query, log_units = math.log1p(len(query.terms)), math.log1p(count)
    expects = bool(query.kinds)
    rows: list[tuple[float, ...]] = []
    for place, unit in enumerate(found.units):
        mask = found.masks[place]
        coverage, local_coverage = memo[mask]
        wide = found.share(found.prefix_masks[place])
        before = found.masks[place - 1] if place else 0
        after = found.masks[place + 1] if place + 1 < count else 0
        length = len(unit)
        heaviest = _heaviest(mask, query)
        new_number, new_name, cues = asked_for(query, unit)
        # Shared weight relative to the unit's own weight: near 1 if the unit has nothing but the query's words.
        copied = coverage * query.total / (lexicon.unit_weight(unit) or 1.0)
        rows.append((
            coverage, wide, coverage * 2.2 / (1.0 + 1.2 * (0.25 + 0.75 * length / 25.0)),
            shared_pairs(query, unit), heaviest[0], heaviest[1], min(1.0, copied), math.log1p(length),
            log_query, local_coverage, best - coverage, best_local - local_coverage,
            float(coverage == best and best > 0),
            max(memo[before][0], memo[after][0]),
            found.share(mask | before) - coverage, 1.0 / (1 + place), _missing(query.number_mask, mask),
            _missing(query.name_mask, mask), new_number, new_name, 1.0 - min(1.0, copied), *cues,
            float(expects and not any(cues)), float(unit.is_question),
            float(unit.is_negated != query.words.is_negated), log_units, float(min(6, mask.bit_count())),
        ))  # fmt: skip
    return rows


def context_features(
    found: Matches, sentence_logits: Sequence[float], rows: Sequence[Sequence[float]]
) -> tuple[float, ...]:
    """Return the row of CONTEXT_FEATURES for a whole context, given its sentence rows and their logits."""
    query = found.query
    whole, wide = union(found.masks), union(found.prefix_masks)
    ordered = sorted(sentence_logits, reverse=True)[:2]
    top = ordered[0] if ordered else _NO_LOGIT
    best = max(range(len(rows)), key=lambda i: (sentence_logits[i], -i)) if rows else None
    # Probability that no sentence is evidence, if sentences were independent; in logarithms to avoid underflow.
    miss_all = math.fsum(
        math.log1p(-min(0.999, 1 / (1 + math.exp(-min(30.0, max(-30.0, z)))))) for z in sentence_logits
    )
    coverage = found.share(whole)
    kept = [unit for unit, drop in zip(found.units, found.dropped, strict=True) if not drop]
    length = sum(map(len, kept))
    heaviest = _heaviest(whole, query)
    touched = sum(1 for mask in found.masks if found.share(mask) >= _TOUCHED)
    weight_found = math.fsum(found.share(mask) for mask in found.masks)
    return (
        coverage, found.share(wide),
        _overlap_any(query, kept),
        heaviest[0], window_share(found, 1), window_share(found, 2), window_share(found, 3),
        max((row[_LOCAL] for row in rows), default=0.0), top, ordered[1] if len(ordered) > 1 else _NO_LOGIT,
        1.0 - math.exp(miss_all),
        _missing(query.number_mask, whole), _missing(query.name_mask, whole), math.log1p(length),
        math.log1p(len(query.terms)), weight_found / math.sqrt(len(found.units) or 1),
        rows[best][_UNMET] if best is not None else 1.0, coverage * coverage,
        math.log1p(touched), float(min(8, whole.bit_count())),
    )  # fmt: skip


def support_features(found: Matches, lexicon: Lexicon) -> tuple[float, ...]:
    """Return the row of SUPPORT_FEATURES of a statement and a context, by its best window of up to three units."""
    query = found.query
    whole, wide = union(found.masks), union(found.prefix_masks)
    place, size = best_window(found, 3)
    pair_place, pair_size = best_window(found, 2)
    window = found.units[place : place + size]
    mask = union(found.masks[place : place + size])
    trigrams = _trigrams(query.words)
    inside = frozenset[tuple[str, str, str]]().union(*map(_trigrams, window))
    # Three consecutive units, because one sentence of a context often continues the previous one ("It was ...").
    coverage, three = found.share(whole), found.share(mask)
    pair = union(found.masks[pair_place : pair_place + pair_size])
    window_weight = math.fsum(lexicon.unit_weight(unit) for unit in window) or 1.0
    single = best_window(found, 1)[0]
    negated = bool(found.units) and found.units[single].is_negated != query.words.is_negated
    return (
        coverage, found.share(wide), window_share(found, 1), found.share(pair), three,
        found.share(union(found.prefix_masks[pair_place : pair_place + pair_size])),
        _overlap_any(query, window),
        _heaviest(mask, query)[0], _missing(query.number_mask, whole), _missing(query.name_mask, whole),
        float(negated), math.log1p(sum(map(len, found.units))), float(query.words.is_personal),
        float(query.words.is_question), math.log1p(len(query.terms)), three * three,
        min(1.0, three * query.total / window_weight),
        _missing(query.number_mask, mask), _missing(query.name_mask, mask), float(three >= 0.99),
        sum(run in inside for run in trigrams) / len(trigrams) if trigrams else 0.0,
        float(min(8, mask.bit_count())), float(min(8, len(query.terms) - mask.bit_count())),
    )  # fmt: skip


def answer_features(query: Query, answer: Words, lexicon: Lexicon, *, refuses: bool) -> tuple[float, ...]:
    """Return the row of ANSWER_FEATURES for a statement given in answer to a question, from the two texts alone."""
    mask = sum(1 << place for place, term in enumerate(query.terms) if term in answer.members)
    starts = answer.prefixes
    wide = mask | sum(
        1 << place
        for place, term in enumerate(query.terms)
        if not mask >> place & 1 and len(term) >= MIN_PREFIX and prefix(term) in starts
    )
    total = query.total or 1.0
    coverage = weigh(mask, query.weights) / total
    own = lexicon.unit_weight(answer)
    copied = min(1.0, coverage * total / (own or 1.0))
    heaviest = _heaviest(mask, query)
    new_number, new_name, cues = asked_for(query, answer)
    return (
        coverage, weigh(wide, query.weights) / total, shared_pairs(query, answer), heaviest[0], copied,
        math.log1p(len(answer)), math.log1p(len(query.terms)), 1.0 - copied, new_number, new_name, *cues,
        float(bool(query.kinds) and not any(cues)), float(answer.is_question),
        _missing(query.number_mask, mask), _missing(query.name_mask, mask),
        float(answer.is_negated != query.words.is_negated), float(len(answer) <= _SHORT_ANSWER),
        float(own * (1.0 - copied) < 0.5), float(refuses),
    )  # fmt: skip


def usefulness_features(reference: Matches, question: Matches) -> tuple[float, ...]:
    """Return the row of USEFULNESS_FEATURES: how much of a reference, also beyond the question, a context has."""
    query = reference.query
    asked = question.query.words.members
    new = sum(1 << place for place, term in enumerate(query.terms) if term not in asked)
    new_total = weigh(new, query.weights) or 1.0
    whole, wide = union(reference.masks), union(reference.prefix_masks)
    place, _ = best_window(reference, 1)
    at = slice(max(0, place - 1), place + 2)
    best_new = max((weigh(mask & new, query.weights) / new_total for mask in reference.masks), default=0.0)
    return (
        reference.share(whole), reference.share(wide),
        weigh(whole & new, query.weights) / new_total, best_new,
        window_share(reference, 1), window_share(reference, 2), _missing(query.number_mask, whole),
        _missing(query.name_mask, whole),
        max((shared_pairs(query, unit) for unit in reference.units), default=0.0), _heaviest(whole, query)[0],
        question.share(union(question.masks)), window_share(question, 1),
        question.share(union(question.masks[at])), math.log1p(len(query.terms)),
        math.log1p(sum(map(len, reference.units))), float(min(6, new.bit_count())),
    )  # fmt: skip


def asked_for(query: Query, unit: Words) -> tuple[float, float, tuple[float, float, float, float, float]]:
    """Return whether the unit has a number or name that the query lacks, and a flag for each kind of question.

    A flag is 1 if the query is of that kind and the unit has what it asks for: who and where a name, when a date,
    count a number, why a cause.
    """
    known = query.words.members
    number = float(any(number not in known for number in unit.numbers))
    name = float(any(name not in known for name in unit.names))
    kinds = query.kinds
    return number, name, (
        name if "who" in kinds else 0.0,
        float(unit.has_date) if "when" in kinds else 0.0,
        name if "where" in kinds else 0.0,
        number if "count" in kinds else 0.0,
        float(unit.has_cause) if "why" in kinds else 0.0,
    )  # fmt: skip


def _trigrams(taken: Words) -> tuple[tuple[str, str, str], ...]:
    return tuple(zip(taken.stems, taken.stems[1:], taken.stems[2:], strict=False))


def _heaviest(mask: int, query: Query) -> tuple[float, float]:
    """Return the heaviest weight among the missing terms and among the matched ones."""
    missing = next((query.weights[place] for place in query.heaviest_first if not mask >> place & 1), 0.0)
    matched, rest = 0.0, mask
    while rest:
        low = rest & -rest
        matched = max(matched, query.weights[low.bit_length() - 1])
        rest ^= low
    return missing, matched


def _missing(wanted: int, mask: int) -> float:
    """Return the fraction of the wanted terms (a query's numbers or names) that the mask lacks; 0 if there are none."""
    return (wanted & ~mask).bit_count() / wanted.bit_count() if wanted else 0.0


def _overlap_any(query: Query, units: Sequence[Words]) -> float:
    """Return the fraction of the query's adjacent pairs that occur in any unit."""
    pairs = query.words.pairs
    there: set[tuple[str, str]] = set()
    for unit in units:
        there |= pairs & unit.pairs
    return len(there) / len(pairs) if pairs else 0.0


def _local_weights(found: Matches) -> list[float]:
    """Return term weights scaled by rarity in the context: a word in all units distinguishes none of them."""
    count = len(found.units)
    frequency = [0] * len(found.query.terms)
    for mask in found.masks:
        rest = mask
        while rest:
            low = rest & -rest
            frequency[low.bit_length() - 1] += 1
            rest ^= low
    ceiling = math.log1p(2.0 * count + 2.0)
    return [
        value * math.log1p((count + 1.0) / (seen + 0.5)) / ceiling
        for value, seen in zip(found.query.weights, frequency, strict=True)
    ]
